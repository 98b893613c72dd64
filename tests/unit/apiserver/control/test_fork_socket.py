"""The socket of the program that runs a server, and copies of the server's process."""

import os

from mockube.apiserver.control.forks import IS_COPY, ForkSocket


async def pieces(on_piece=lambda: None):
    on_piece()
    yield b"objects"


async def test_copy_of_a_process_sends_no_order_to_the_program_of_its_parent(tmp_path, monkeypatch):
    socket = ForkSocket(tmp_path / "forks")
    monkeypatch.setattr(os, "getpid", lambda: 0)
    assert (await socket.make("other", pieces())).problem == IS_COPY
    assert not any(tmp_path.iterdir())


async def test_order_that_was_begun_before_the_copy_is_left_to_the_parent(tmp_path, monkeypatch):
    socket = ForkSocket(tmp_path / "forks")

    def become_copy():
        monkeypatch.setattr(os, "getpid", lambda: 0)

    assert (await socket.make("other", pieces(become_copy))).problem == IS_COPY
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"objects"], (
        "the file is that of the parent"
    )

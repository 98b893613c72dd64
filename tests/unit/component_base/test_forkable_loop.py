"""An event loop, of asyncio or of uvloop, that goes on in a forked process with descriptors of its own."""

import asyncio
import os
import socket
import sys
import threading

import pytest

from mockube.component_base.forkable_loop import ForkableSelectorLoop
from mockube.component_base.inherited_descriptors import replace_descriptors
from mockube.component_base.loop import new_forkable_loop
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")

ENDED = b""


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request):
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    created = ForkableSelectorLoop() if request.param == "asyncio" else new_forkable_loop()
    assert created.problem() == ""
    yield created
    created.close()


async def fork(loop, in_child, ports=()):
    """Fork the process, and return what a coroutine function returns in the child, which gets the new ports."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        try:
            new_ports = replace_descriptors({1, 2, theirs.fileno()}, ports)
            loop.continue_after_fork()
            answer = await in_child(new_ports)
            theirs.sendall(str(answer).encode())
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(0)
    with ours:
        answer = await asyncio.wait_for(loop.sock_recv(ours, 1 << 16), WAIT_TIMEOUT)
    os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended
    return answer.decode()


@pytest.mark.thorough
def test_loop_of_asyncio_is_used_without_uvloop(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    created = new_forkable_loop()
    created.close()
    assert isinstance(created, ForkableSelectorLoop)


@pytest.mark.thorough
def test_tasks_timers_and_threads_go_on_in_both_processes(loop):
    async def main():
        timer = loop.create_future()
        loop.call_later(0.01, timer.set_result, "timer")

        async def in_child(_):
            return await timer, await asyncio.to_thread(lambda: "thread"), asyncio.get_running_loop() is loop

        in_parent = loop.create_task(in_child({}))
        expected = str(("timer", "thread", True))
        assert await fork(loop, in_child) == expected
        assert str(await in_parent) == expected

    loop.run_until_complete(main())


@pytest.mark.thorough
def test_callback_that_was_ready_runs_in_both_processes(loop):
    async def main():
        called = asyncio.Event()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=[called.set])
        thread.start()
        thread.join()

        async def in_child(_):
            return await called.wait()

        assert await fork(loop, in_child) == "True"
        await called.wait()

    loop.run_until_complete(main())


@pytest.mark.thorough
def test_child_listens_on_its_own_port_and_has_no_connection_of_the_parent(loop):
    async def echo(reader, writer):
        while data := await reader.read(100):
            writer.write(data)
        ended.set()
        writer.close()

    async def main():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def ask():
            writer.write(b"question")
            return await reader.read(100)

        assert await ask() == b"question"

        async def in_child(new_ports):
            assert await reader.read(100) == ENDED  # the client's side of the connection
            await ended.wait()  # the server's side
            its_reader, its_writer = await asyncio.open_connection("127.0.0.1", new_ports[port])
            its_writer.write(b"in the child")
            return new_ports.keys() == {port} and new_ports[port] != port, await its_reader.read(100)

        assert await fork(loop, in_child, [port]) == str((True, b"in the child"))
        assert await ask() == b"question"
        writer.close()
        server.close()
        await ended.wait()

    ended = asyncio.Event()
    loop.run_until_complete(main())


@pytest.mark.thorough
def test_port_is_free_after_the_parent_has_closed_it(loop):
    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = listener.getsockname()
            listener.settimeout(0)
            accepting = loop.create_task(loop.sock_accept(listener))
            await yield_to_loop()

            async def in_child(new_ports):
                with socket.create_connection(("127.0.0.1", new_ports[address[1]])):
                    accepted, _ = await accepting
                return accepted.family == socket.AF_INET

            assert await fork(loop, in_child, [address[1]]) == "True"
            accepting.cancel()
            await asyncio.wait([accepting])
        with socket.create_server(address):
            pass

    loop.run_until_complete(main())


@pytest.mark.thorough
def test_work_of_threads_is_counted_until_its_result_is_received(loop):
    async def main():
        release = threading.Event()
        work = loop.create_task(asyncio.to_thread(release.wait))
        await yield_to_loop()
        assert len(loop.thread_work) == 1
        release.set()
        await work
        await yield_to_loop()
        assert not loop.thread_work

    loop.run_until_complete(main())


@pytest.mark.thorough
def test_file_of_the_parent_is_not_written_by_the_child(loop, tmp_path):
    path = tmp_path / "file"

    async def main():
        with path.open("wb", buffering=0) as file:

            async def in_child(_):
                return file.write(b"child")

            assert await fork(loop, in_child) == "5"
            file.write(b"parent")
        assert path.read_bytes() == b"parent"

    loop.run_until_complete(main())

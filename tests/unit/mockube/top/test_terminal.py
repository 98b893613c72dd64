"""What is painted on a terminal of some size."""

import os
import pty
import sys
import termios

import pytest

from mockube.top.screen import Line
from mockube.top.terminal import Screen


@pytest.fixture
def painted(monkeypatch):
    """Return what is painted on a terminal of some columns and lines."""
    master, slave = pty.openpty()

    def paint(columns, lines, *texts):
        termios.tcsetwinsize(slave, (lines, columns))
        with os.fdopen(os.dup(slave), "w") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            Screen(None).paint([Line(text) for text in texts])
            monkeypatch.undo()
        found = b""
        while not found.endswith(b"\x1b[J"):
            found += os.read(master, 4096)
        return (
            found.decode()
            .removeprefix("\x1b[H")
            .removesuffix("\x1b[J")
            .replace("\r\r\n", "\r\n")
            .split("\x1b[K")
        )

    yield paint
    os.close(master)
    os.close(slave)


def test_lines_are_cut_before_the_last_column_which_would_be_erased(painted):
    assert painted(10, 2, "x" * 10, "y" * 9, "z") == ["x" * 9, "\r\n" + "y" * 9, ""]


def test_terminal_without_a_size_has_the_usual_one(painted):
    lines = painted(0, 0, *["x" * 100] * 30)
    assert len(lines) == 24 + 1
    assert lines[0] == "x" * 79

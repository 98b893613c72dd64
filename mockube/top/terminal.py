"""The terminal: a screen of its own that is painted over, and given back however the program ends."""

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from .screen import Line

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
"""The other screen, without a cursor."""
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_END_OF_LINE: Final = "\x1b[K"
_END_OF_SCREEN: Final = "\x1b[J"
_COLUMNS, _LINES = 80, 24
"""The size of a terminal that does not know its own, as one of a CI job or of ssh -tt."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
QUIT: Final = frozenset("qQ\x03\x04")
"""The keys that end: q, and what Ctrl-C and Ctrl-D send."""
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def is_screen() -> bool:
    """Return whether stdout is a terminal that can be painted over."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Screen:
    """A screen that lasts for a block; `woken` is set when its size changes, and when the user or a signal ends it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_ended, self.woken = False, asyncio.Event()
        self._loop = loop

    @property
    def size(self) -> tuple[int, int]:
        """The columns and lines, without those of the environment, which a new size does not change."""
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        return columns or _COLUMNS, lines or _LINES

    def paint(self, lines: Sequence[Line]) -> None:
        width, height = self.size
        # In the last column, the cursor stays there, and the end of a line that is erased has its character.
        painted = [_painted(line, width - 1) + _END_OF_LINE for line in lines[:height]]
        sys.stdout.write(_HOME + "\r\n".join(painted) + _END_OF_SCREEN)
        sys.stdout.flush()

    def end(self) -> None:
        self.is_ended = True
        self.woken.set()

    def read_key(self) -> None:
        keys = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
        if not keys or QUIT & set(keys):
            self.end()

    def handle_signals(self) -> None:
        for number in _ENDING:
            self._loop.add_signal_handler(number, self.end)
        self._loop.add_signal_handler(signal.SIGWINCH, self.woken.set)

    def ignore_signals(self) -> None:
        for number in (*_ENDING, signal.SIGWINCH):
            self._loop.remove_signal_handler(number)


def _painted(line: Line, width: int) -> str:
    text = line.text.encode("ascii", "replace").decode()[:width]  # a character is as wide as a column
    return f"{_BOLD}{text}{_PLAIN}" if line.is_bold else text


@contextmanager
def open_screen() -> Iterator[Screen]:
    """Yield a screen, with keys if stdin is a terminal."""
    screen = Screen(asyncio.get_running_loop())
    screen.handle_signals()
    with _keys(screen):
        sys.stdout.write(_ENTER)
        try:
            yield screen
        finally:
            sys.stdout.write(_PLAIN + _LEAVE)
            sys.stdout.flush()
            screen.ignore_signals()


@contextmanager
def _keys(screen: Screen) -> Iterator[None]:
    """Read keys one by one, without an echo; Ctrl-Z is a key, too, as the screen would stay."""
    if not sys.stdin.isatty():
        yield
        return
    number, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(number)
    changed = termios.tcgetattr(number)
    changed[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(number, termios.TCSADRAIN, changed)
    loop.add_reader(number, screen.read_key)
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)

"""What is said while something goes on, on stderr: one live line at a terminal, a line for each step elsewhere."""

import sys
from typing import Final, Protocol

from mockube.apimachinery.clock import Clock, Timer

_ERASE: Final = "\r\x1b[K"
_TICK: Final = 0.1


class Out(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


def print_line(what: str) -> None:
    print(f"mockube: {what}", file=sys.stderr, flush=True)


class Progress:
    """`step` says what goes on, until something else is said or it is `done`; `say` says what has happened, and stays."""

    def __init__(self, out: Out, *, live: bool, clock: Clock) -> None:
        self._out = out
        self._live = live
        self._clock = clock
        self._began = clock.monotonic()
        self._what = ""
        self._timer: Timer | None = None

    def step(self, what: str) -> None:
        self.done()
        if self._live:
            self._what = what
            self._draw()
        else:
            self._write(f"mockube: {what}\n")

    def say(self, what: str) -> None:
        self.done()
        self._write(f"mockube: {what}\n")

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._what = None, ""
            self._write(_ERASE)

    def _draw(self) -> None:
        self._write(f"{_ERASE}mockube: {self._what} ... {self._clock.monotonic() - self._began:.1f} s")
        self._timer = self._clock.call_later(_TICK, self._draw)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def is_live() -> bool:
    return sys.stderr.isatty()

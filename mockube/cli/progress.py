"""Progress on stderr: one live line at a terminal, or one line for each step."""

import sys
from typing import Final, Protocol

from mockube.component_base.clock import Clock, Timer
from mockube.component_base.printable import printable

ERASE: Final = "\r\x1b[K"
_TICK: Final = 0.1


class Out(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


def print_line(message: str) -> None:
    sys.stderr.write(f"mockube: {printable(message)}\n")  # at once: jobs print their lines at the same time
    sys.stderr.flush()


class Progress:
    """The progress of a command: at a terminal, the next message or `done` replaces the line of `step`; `report` prints a permanent line."""

    def __init__(self, out: Out, *, live: bool, clock: Clock) -> None:
        self._out = out
        self._live = live
        self._clock = clock
        self._began = clock.monotonic()
        self._message = ""
        self._timer: Timer | None = None

    def step(self, message: str) -> None:
        self.done()
        if self._live:
            self._message = printable(message)
            self._draw()
        else:
            self._write(f"mockube: {printable(message)}\n")

    def report(self, message: str) -> None:
        self.done()
        self._write(f"mockube: {printable(message)}\n")

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._message = None, ""
            self._write(ERASE)

    def _draw(self) -> None:
        self._write(f"{ERASE}mockube: {self._message} ... {self._clock.monotonic() - self._began:.1f} s")
        self._timer = self._clock.call_later(_TICK, self._draw)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class FrequentSteps:
    """The steps of a command that has thousands of them: those that follow another one at once are not shown."""

    def __init__(self, progress: Progress, clock: Clock) -> None:
        self._progress = progress
        self._clock = clock
        self._next = clock.monotonic()

    def step(self, message: str) -> None:
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + _TICK
            self._progress.step(message)


def is_live() -> bool:
    return sys.stderr.isatty()

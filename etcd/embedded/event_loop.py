"""Yield to the event loop between the steps of long work."""

from collections.abc import Generator
from types import coroutine


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Let every other task that is ready run once."""
    yield

"""Let others run: what never waits would keep the event loop to itself."""

from collections.abc import Generator
from types import coroutine


@coroutine
def turn() -> Generator[None, None, None]:
    """Every other task that can run does so once."""
    yield

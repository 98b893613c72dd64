"""The separators of fields in a text: they are replaced by marks, so that constant patterns find them, in linear time."""

from collections.abc import Generator, Mapping
from functools import lru_cache
from typing import Final

from .process import CommandStart, Effect, slices

BLANK: Final = "\ue000"
"""The mark of a blank that separates fields."""
OTHER: Final = "\ue001"
"""The mark of another separator."""
_ORDINARY: Final = "\ue002"
_BLANKS: Final = " \t\n"
_MARKED_AT_ONCE: Final = 1024
"""The characters in which separators are replaced in the time of a command."""


def mark_separators(text: str, separators: str) -> Generator[Effect, bytes | None, str]:
    """Return a text of the same length in which the separators are marks."""
    marks = _marks(separators)
    if len(text) <= _MARKED_AT_ONCE:
        return text.translate(marks)
    parts = []
    for part in slices(text, _MARKED_AT_ONCE):
        yield CommandStart()
        parts.append(part.translate(marks))
    return "".join(parts)


@lru_cache(maxsize=64)
def _marks(separators: str) -> Mapping[int, str]:
    characters = {ord(char): BLANK if char in _BLANKS else OTHER for char in separators}
    return {ord(BLANK): _ORDINARY, ord(OTHER): _ORDINARY, **characters}

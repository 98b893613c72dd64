"""The separators of fields in a text: they are replaced by marks, so that constant patterns find them, in linear time."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

BLANK: Final = "\ue000"
"""The mark of a blank that separates fields."""
OTHER: Final = "\ue001"
"""The mark of another separator."""
_ORDINARY: Final = "\ue002"
_BLANKS: Final = " \t\n"


def mark_separators(text: str, separators: str) -> str:
    """Return a text of the same length in which the separators are marks."""
    return text.translate(_marks(separators))


@lru_cache(maxsize=64)
def _marks(separators: str) -> Mapping[int, str]:
    characters = {ord(char): BLANK if char in _BLANKS else OTHER for char in separators}
    return {ord(BLANK): _ORDINARY, ord(OTHER): _ORDINARY, **characters}

"""Patterns of criteria: texts in which `*` stands for any characters, `?` for one and `[a-z]` for one of a class.

Criteria are compared with every request, so a pattern is compiled once, and what it may cost at most is known before. Nothing
backtracks: the shortest text before each part decides, as in Python's fnmatch. RE2 would take ten times as long for `web-*`, and
milliseconds where a part of hundreds of characters is sought: what its states need is more memory than a pattern may have.
"""

import fnmatch
import re
from typing import Final

MAX_PATTERN: Final = 512
"""The characters of the longest pattern, and of a text of which a pattern with wildcards sees the rest no more."""
_STAR: Final = "*"
_STAR_COST: Final = 5
"""Microseconds in which a part of one character is sought in the longest text; each further character takes less than one."""
_WILDCARD: Final = re.compile(r"[*?\[]")


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_match", "_text", "cost")

    def __init__(self, text: str) -> None:
        """Compile a pattern; raise ValueError if it is too long, or has a class without an end."""
        __tracebackhide__ = True
        if len(text) > MAX_PATTERN:
            raise ValueError(f"a pattern has at most {MAX_PATTERN} characters, not {len(text)}")
        if _has_open_class(text):
            raise ValueError(f'the pattern "{text}" has a [ without a ]: write [[] for a [')
        self._text = text
        self._match = re.compile(fnmatch.translate(text)).match if _WILDCARD.search(text) else None
        self.cost = 0 if self._match is None else 1 + _search_cost(text)
        """The microseconds that a comparison takes at most, more than one without wildcards."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches all of a text."""
        if self._match is None:
            return text == self._text
        return self._match(text, 0, MAX_PATTERN) is not None


def _has_open_class(text: str) -> bool:
    start = text.find("[")
    while start != -1:
        first = start + 2 if text.startswith("!", start + 1) else start + 1
        end = text.find("]", first + 1)  # a ] that comes first is one of the class
        if end == -1:
            return True
        start = text.find("[", end)
    return False


def _search_cost(text: str) -> int:
    """Return the microseconds of a search for what follows the first star."""
    behind = text.partition(_STAR)[2].rstrip(_STAR)
    return _STAR_COST * (1 + behind.count(_STAR)) + len(behind) if behind else 0

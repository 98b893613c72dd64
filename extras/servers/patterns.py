"""The regular expressions and the wildcards of a configuration, which are matched in linear time. Pure."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern
from mockube.apimachinery.regexp.perl import perl_pattern
from mockube.apimachinery.wildcards import WildcardsTooCostly, matches_wildcards

_WILDCARDS: Final = "*?["


class ConfiguredPattern(Struct, frozen=True):
    """A valid pattern; one whose syntax the engine does not have matches nothing."""

    text: str
    compiled: CapturingPattern | None

    @property
    def is_unsupported(self) -> bool:
        return self.compiled is None

    def search(self, text: str) -> Mapping[str, str] | None:
        """Return the groups of a match by their numbers and names, the whole match as "0"; None if the text does not match."""
        found = None if self.compiled is None else self.compiled.search(text)
        if found is None:
            return None
        return {str(index): group for index, group in enumerate(found.texts)} | dict(found.named)


def compile_text(text: str, *, ignores_case: bool = False) -> ConfiguredPattern:
    """Return a pattern; raise `PerlPatternError` for one that the server does not accept either."""
    return _with_case(text) if not ignores_case else _without_case(text)


@memoize(1024, max_length=300)
def _with_case(text: str) -> ConfiguredPattern:
    return ConfiguredPattern(text, perl_pattern(text))


@memoize(1024, max_length=300)
def _without_case(text: str) -> ConfiguredPattern:
    return ConfiguredPattern(text, perl_pattern(text, ignores_case=True))


def has_wildcards(pattern: str) -> bool:
    return any(char in pattern for char in _WILDCARDS)


def matches_name(pattern: str, name: str) -> bool:
    """Return whether a pattern with wildcards matches all of a name; one that would take too long matches nothing."""
    try:
        return matches_wildcards(name, pattern)
    except WildcardsTooCostly:
        return False

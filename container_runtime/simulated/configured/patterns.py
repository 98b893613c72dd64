"""The regular expressions of a configuration, which RE2 matches in linear time. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.regexp.engine import compile_leftmost

_MEMORY: Final = 1 << 20
_MISSING_PARENTHESIS: Final = "missing )"


class ConfiguredPattern(Struct, frozen=True):
    """A compiled pattern; one whose syntax RE2 does not have matches nothing."""

    text: str
    program: Any
    names: tuple[tuple[str, int], ...] = ()

    @property
    def is_unsupported(self) -> bool:
        return self.program is None

    def search(self, text: str) -> Mapping[str, str] | None:
        """Return the groups of a match by their numbers and names; None if the text does not match."""
        if self.program is None:
            return None
        data = text.encode("utf-8", "surrogateescape")
        match = self.program.search(data)
        if match is None:
            return None
        groups = {}
        for index in range(1, self.program.groups + 1):
            start, end = match.span(index)
            groups[str(index)] = data[start:end].decode("utf-8", "surrogateescape") if start >= 0 else ""
        return groups | {name: groups[str(index)] for name, index in self.names}


@lru_cache(maxsize=1024)
def compile_text(text: str, *, ignores_case: bool = False) -> ConfiguredPattern:
    """Compile a pattern; raise `ValueError` for one that the server does not accept either."""
    pattern = text.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    try:
        program = compile_leftmost(f"(?i){pattern}" if ignores_case else pattern, _MEMORY)
    except ValueError as error:
        if _MISSING_PARENTHESIS in str(error) and "(?" not in text:
            raise
        return ConfiguredPattern(text, None)
    names = tuple((_text(name), index) for name, index in program.groupindex.items())
    return ConfiguredPattern(text, program, names)


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

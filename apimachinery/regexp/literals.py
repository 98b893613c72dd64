"""Many literal texts at once, found in one pass over a text."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from .engine import compile_program

MIN_LENGTH: Final = 6
"""The least number of characters of a literal: the program has so many of each, and few texts have them by chance."""
_MEMORY: Final = 1 << 30
"""The limit of a program, which has some bytes for each character: 100,000 literals need a few percent of it."""


class Literals:
    """Texts of at least `MIN_LENGTH` characters. The time of a search is that of one pass, however many they are."""

    def __init__(self, literals: Collection[str]) -> None:
        self._by_beginning: dict[bytes, list[bytes]] = {}
        for literal in sorted({*literals}, key=lambda literal: (-len(literal), literal)):
            if len(literal) < MIN_LENGTH:
                raise ValueError(f"a literal needs {MIN_LENGTH} characters")
            self._by_beginning.setdefault(_encode(literal[:MIN_LENGTH]), []).append(_encode(literal))
        pattern = "|".join(re.escape(beginning.decode()) for beginning in sorted(self._by_beginning))
        self._program = compile_program(pattern, _MEMORY) if pattern else None

    def occur_in(self, text: bytes) -> bool:
        """Return whether a text in UTF-8 has one of them."""
        return next(self._spans(text), None) is not None

    def replace(self, text: str, replacement: str) -> str:
        """Return a text with each of them replaced: of those that begin at one place, the longest."""
        data, parts, end = _encode(text), list[bytes](), 0
        for start, following in self._spans(data):
            parts += [data[end:start], replacement.encode()]
            end = following
        return b"".join([*parts, data[end:]]).decode(errors="surrogatepass") if parts else text

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        position = 0
        while self._program is not None and (match := self._program.search(data, position)) is not None:
            start, end = match.span()
            literals = self._by_beginning[data[start:end]]
            found = next((literal for literal in literals if data.startswith(literal, start)), None)
            if found is not None:
                yield start, start + len(found)
            position = start + (1 if found is None else len(found))


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")

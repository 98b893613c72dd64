"""The last steps of the expansion of words: field splitting, file name patterns, and the removal of quotes."""

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from .patterns import Pieces, parse_pattern
from .process import CommandStart, Effect, Process, count_work
from .separators import BLANK, OTHER, mark_separators
from .vfs.file_entry import FileError
from .vfs.path_walk import MAX_PATH

_FILES_PER_COMMAND: Final = 50
_FIELDS_PER_COMMAND: Final = 200
_SPLIT_PER_COMMAND: Final = 100
_CHARACTERS_PER_COMMAND: Final = 1 << 16
_MAX_GLOB: Final = 4 * MAX_PATH
"""The characters of a pattern beyond which it matches no path: most of them stand for characters of one."""
_WHITESPACE: Final = " \t\n"
_DELIMITER: Final = re.compile(f"{BLANK}*{OTHER}{BLANK}*|{BLANK}+")


class Piece(NamedTuple):
    """A part of an expanded word."""

    text: str
    quoted: bool
    splits: bool = False
    """Whether it is the result of an unquoted expansion."""
    breaks: bool = False
    """Whether it separates two fields, as between the arguments in `"$@"`; the text is empty."""


def _split(text: str, separators: str) -> Generator[Effect, bytes | None, list[str]]:
    """Return the parts of a text between its separators."""
    parts: list[str] = []
    position = 0
    marked = yield from mark_separators(text, separators)
    if BLANK not in marked and OTHER not in marked:
        return [text]
    for match in _DELIMITER.finditer(marked):
        if len(parts) % _SPLIT_PER_COMMAND == _SPLIT_PER_COMMAND - 1:
            yield CommandStart()
        parts.append(text[position : match.start()])
        position = match.end()
    return [*parts, text[position:]]


def split_pieces(pieces: Sequence[Piece], separators: str) -> Generator[Effect, bytes | None, list[Pieces]]:
    """Return the fields, each as its texts with whether they are quoted."""
    fields: list[Pieces] = []
    current: list[tuple[str, bool]] | None = None
    blanks = "".join(char for char in separators if char in _WHITESPACE)
    for number, piece in enumerate(_merge(pieces)):
        if number % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
            yield CommandStart()
        if piece.breaks:
            fields += [current] if current is not None else []
            current = None
            continue
        text = piece.text
        if not piece.splits or not separators:
            if text or piece.quoted:
                current = current or []
                current.append((text, piece.quoted))
            continue
        yield from count_work(len(text), _CHARACTERS_PER_COMMAND)
        parts = yield from _split(text if current is not None else text.lstrip(blanks), separators)
        for index, part in enumerate(parts):
            if index % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
                yield CommandStart()
            if part:
                current = current or []
                current.append((part, False))
            if index < len(parts) - 1:
                fields.append(current or [])
                current = None
    return fields if current is None else [*fields, current]


def _merge(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Join adjacent results of expansions, which are split together."""
    texts: list[str] = []
    for piece in pieces:
        if piece.splits:
            texts.append(piece.text)
            continue
        if texts:
            yield Piece("".join(texts), quoted=False, splits=True)
            texts = []
        yield piece
    if texts:
        yield Piece("".join(texts), quoted=False, splits=True)


def field_text(field: Pieces) -> str:
    return "".join(text for text, _ in field)


def has_pattern(field: Pieces) -> bool:
    has_bracket = False
    for text, quoted in field:
        if quoted:
            continue
        start = 0 if has_bracket else text.find("[")
        if "*" in text or "?" in text or (start >= 0 and text.find("]", start) >= 0):
            return True
        has_bracket = has_bracket or start >= 0
    return False


def matching_files(process: Process, field: Pieces) -> Generator[Effect, bytes | None, list[str]]:
    """Return the paths that match a field as a pattern, sorted."""
    if sum(len(text) for text, _ in field) > _MAX_GLOB:
        return []
    paths = [""]
    for index, component in enumerate(_components(field)):
        separator = "/" if index else ""
        if not has_pattern(component):
            name = (yield from parse_pattern(component)).literal if component else ""
            paths = [f"{path}{separator}{name}" for path in paths]
            continue
        pattern = yield from parse_pattern(component)
        matching: list[str] = []
        for path in paths:
            folder = f"{path}{separator}"
            names = _children(process, folder or ".")
            yield from count_work(len(names) + 1, _FILES_PER_COMMAND)
            starts_with_dot = component[0][0].startswith(".")
            candidates = (name for name in names if starts_with_dot or not name.startswith("."))
            matching += [f"{folder}{name}" for name in pattern.matching(candidates)]
        paths = matching
    found: list[str] = []
    for number, path in enumerate(paths, start=1):
        if not number % _FILES_PER_COMMAND:
            yield CommandStart()
        if process.host.files.has(process.path(path)):
            found.append(path)
    return found


def _children(process: Process, folder: str) -> list[str]:
    try:
        return list(process.host.files.children(process.path(folder)))
    except FileError:
        return []


def _components(field: Pieces) -> list[Pieces]:
    components: list[list[tuple[str, bool]]] = [[]]
    for text, quoted in field:
        first, *others = text.split("/")
        components[-1].append((first, quoted))
        components += [[(other, quoted)] for other in others]
    return [[piece for piece in component if piece[0]] for component in components]

"""Programs that transform lines: cut, tr, sort, uniq."""

import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge as merge_sorted
from itertools import groupby, islice
from typing import Any, Final

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.patterns import CLASSES
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Process,
    Program,
    ProgramUsageError,
    Run,
    count_work,
    read_input,
    slices,
    write_text,
)

from .inputs import BLOCK, LINES_AT_ONCE, Lines, number_of, read_all, read_files, split_lines, write_lines
from .printf import unescape

_RANGE: Final = re.compile(r"([0-9]{0,9})(-?)([0-9]{0,9})")
_CLASS: Final = re.compile(r"\[:([a-z]+):\]|\[(.)\*([0-9]*)\]|\[=(.)=\]|(.)-(.)|(.)", re.DOTALL)
_NUMBER: Final = re.compile(r"\s*(-?[0-9]{0,15}(?:\.[0-9]{0,15})?)")
_KEY: Final = re.compile(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?([bdfghiMnRrV]*)")
_VERSION: Final = re.compile(r"([0-9]+)")
_BLANKS_AND_FIELD: Final = re.compile(r"[ \t]*[^ \t]*")
_BYTES_AT_ONCE: Final = 4096
"""What tr replaces in the time of a command."""
_SQUEEZED_IN: Final = 16
"""The commands in whose time it squeezes as much."""
_OTHER_CHARACTERS_IN: Final = 5
"""The commands that as many characters beyond ASCII take, which are looked up one by one."""
_MERGED_AT_ONCE: Final = 20
"""The sorted lines that are merged in the time of a command."""
_UNITS: Final = {"": 0, "K": 1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def cut(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "b:c:f:d:sDnO:",
        long={
            "delimiter": "d",
            "fields": "f",
            "characters": "c",
            "bytes": "b",
            "only-delimited": "s",
            "output-delimiter": "O",
        },
    )
    letter = next((letter for letter in "fcb" if letter in options), "")
    if not letter:
        raise ProgramUsageError("expected a list of bytes, characters, or fields")
    selections = _selections(options.get(letter))
    inputs = yield from read_files(process, options.arguments)
    mark = options.get("d", "\t") or "\0"
    joint = options.get("O") if "O" in options else mark if letter == "f" else ""

    def select(lines: Sequence[str]) -> Iterator[str]:
        for line in lines:
            if letter == "f" and mark not in line:
                yield "" if "s" in options else f"{line}\n"
                continue
            parts: Sequence[str] = line.split(mark) if letter == "f" else line
            selected: list[str] = []
            for start, end in selections:
                if start >= len(parts):
                    break
                selected += parts[start:end]
            yield f"{joint.join(selected)}\n"

    yield from write_lines((yield from split_lines(inputs.data)), select)
    return inputs.code


def _selections(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or not (match[1] or match[3]):
            raise ProgramUsageError(f"invalid range '{part}'" if part else "missing list of positions")
        start = int(match[1] or 1)
        end = int(match[3]) if match[3] else sys.maxsize if match[2] else start
        if not start or end < start:
            raise ProgramUsageError(f"invalid range '{part}'")
        ranges.append((start - 1, end))
    return merge(ranges)


def merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges without overlap in order: a part is selected once."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif start < end:
            merged.append((max(start, 0), end))
    return merged


def transliterate(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "cCds",
        long={"delete": "d", "complement": "c", "squeeze-repeats": "s"},
        stops=True,
    )
    sets = options.arguments
    if not sets or (len(sets) < 2 and not options.has_any("ds")):
        raise ProgramUsageError("usage: tr [-cds] STRING1 [STRING2]")
    replace = _replacement(options, sets)
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    output, last, block = "", "", b"-"
    while block:
        block = yield from read_input(BLOCK)
        for part in slices(block, _BYTES_AT_ONCE):
            commands = _SQUEEZED_IN if "s" in options else 1 if part.isascii() else _OTHER_CHARACTERS_IN
            yield from count_work(commands, 1)
            text = replace(decoder.decode(part), last)
            output, last = output + text, text[-1:] or last
        if len(output) >= BLOCK:  # a shorter part waits for more, as in the buffer of a real program
            yield write_text(output)
            output = ""
    yield write_text(output + replace(decoder.decode(b"", final=True), last))
    return 0


def _replacement(options: ProgramOptions, sets: Sequence[str]) -> Callable[[str, str], str]:
    """Return a function that returns what tr writes for a part of its input, behind the last character before it."""
    first = _characters(sets[0], 0)
    members = set(first)
    second = _characters(sets[1], len(first)) if len(sets) > 1 else ""
    complements = options.has_any("cC")
    squeezed = set(second) if second else members
    table = (
        {ord(char): second[min(index, len(second) - 1)] for index, char in reversed(list(enumerate(first)))}
        if second
        else {}
    )

    def replace(text: str, last: str) -> str:
        if "d" in options:
            removed = {char for char in set(text) if (char in members) is not complements}
            text = text.translate(dict.fromkeys(map(ord, removed)))
        elif second and complements:
            text = text.translate({ord(char): second[-1] for char in set(text) if char not in members})
        elif second:
            text = text.translate(table)
        if "s" in options:
            text = _squeeze(last + text, squeezed, complements=complements and not second)[len(last) :]
        return text

    return replace


def _end_of_fields(line: str, count: int) -> int:
    """Return the end of the first fields of a line, each with the blanks before it."""
    position = 0
    for _ in range(count):
        match = _BLANKS_AND_FIELD.match(line, position)
        if match is None or match.end() == position:
            break
        position = match.end()
    return position


def _squeeze(text: str, members: set[str], *, complements: bool) -> str:
    squeezed = {char for char in set(text) if (char in members) is not complements}
    if not squeezed:
        return text
    return "".join(char if char in squeezed else "".join(run) for char, run in groupby(text))


def _characters(text: str, length: int) -> str:
    """Return the characters that a set of `tr` stands for."""
    parts: list[str] = []
    for match in _CLASS.finditer(unescape(text)):
        name, repeated, count, equal, start, end, char = match.groups()
        if name is not None:
            if name not in CLASSES:
                raise ProgramUsageError(f"invalid character class '{name}'")
            parts += ["".join(map(chr, range(ord(first), ord(last) + 1))) for first, last in CLASSES[name]]
        elif repeated is not None:
            size = int(count[:9]) if count else max(length - sum(map(len, parts)), 0)
            parts.append(repeated * min(size, 1000))
        elif start is not None:
            if end < start:
                raise ProgramUsageError(f"{start}-{end}: reversed range")
            parts.append("".join(map(chr, range(ord(start), ord(end) + 1))))
        else:
            parts.append(equal or char)
    return "".join(parts)


class _SortKey(Struct, frozen=True, kw_only=True):
    first: int
    first_offset: int
    last: int
    last_offset: int
    letters: str


def sort(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "bcCdfghik:MmnNo:rRsS:t:T:uVz",
        long={
            "key": "k",
            "field-separator": "t",
            "numeric-sort": "n",
            "reverse": "r",
            "unique": "u",
            "output": "o",
            "stable": "s",
            "version-sort": "V",
            "human-numeric-sort": "h",
            "ignore-case": "f",
            "check": "c",
            "zero-terminated": "z",
        },
        code=2,
    )
    for letter in "CMR":
        if letter in options:
            raise ProgramUsageError(f"-{letter} is not simulated", 2)
    keys = [_parse_key(text) for text in options.all("k")]
    inputs = yield from read_files(process, options.arguments, code=2)
    if inputs.code:
        return inputs.code
    end = "\0" if "z" in options else "\n"
    lines = yield from split_lines(inputs.data, end, limits.MAX_SORTED_LINES)
    ordered = yield from _sort_lines(lines, keys, options)
    if "c" in options:
        return int(ordered != lines)
    if "o" in options:
        host, output = process.host, bytearray()
        for part in slices(ordered, LINES_AT_ONCE):
            yield CommandStart()
            output += "".join(f"{line}{end}" for line in part).encode("utf-8", "surrogateescape")
        host.files.write(
            process.path(options.get("o")),
            bytes(output),
            modified=host.now_running(is_shown=True).timestamp(),
        )
        host.changes += 1
        return 0
    yield from write_lines(ordered, lambda part: (f"{line}{end}" for line in part))
    return 0


def _sort_lines(lines: Sequence[str], keys: Sequence[_SortKey], options: ProgramOptions) -> Lines:
    general = "".join(letter for letter in "bdfghinrV" if letter in options)
    mark = options.get("t") or None
    ordered = list(lines)
    uses_whole = not (options.has_any("su") and (keys or general.strip("r")))
    if uses_whole:
        ordered = yield from _ordered(ordered, str, is_reverse="r" in options)
    parts = [
        (_key_of(key, mark, key.letters or general), "r" in (key.letters or general))
        for key in reversed(keys)
    ]
    if not keys and general.strip("r"):
        parts = [(lambda line: _value(line, general), "r" in general)]
    for function, is_reverse in parts:
        ordered = yield from _ordered(ordered, function, is_reverse=is_reverse)
    if "u" not in options:
        return ordered
    unique: list[str] = []
    last: Any = object()
    for part in slices(ordered, LINES_AT_ONCE):
        yield CommandStart()
        for line in part:
            value = tuple(function(line) for function, _ in parts) or (line,)
            if value != last:
                unique.append(line)
            last = value
    return unique


def _ordered(lines: Sequence[str], function: Callable[[str], Any], *, is_reverse: bool) -> Lines:
    """Sort lines by what a function makes of each, those that are equal by their places: short parts, which are merged."""
    parts = []
    for part in slices(lines, LINES_AT_ONCE):
        yield CommandStart()
        parts.append(sorted(part, key=function, reverse=is_reverse))
    if len(parts) < 2:
        return parts[0] if parts else []
    merged = merge_sorted(*parts, key=function, reverse=is_reverse)
    ordered: list[str] = []
    while part := [*islice(merged, _MERGED_AT_ONCE)]:
        yield CommandStart()
        ordered += part
    return ordered


def _parse_key(text: str) -> _SortKey:
    start, _, end = text.partition(",")
    first = _KEY.fullmatch(start)
    last = _KEY.fullmatch(end) if end else None
    if first is None or (end and last is None) or first[1] == "0":
        raise ProgramUsageError(f"bad field specification '{text}'", 2)
    return _SortKey(
        first=int(first[1]),
        first_offset=int(first[2] or 1),
        last=int(last[1]) if last else 0,
        last_offset=int(last[2] or 0) if last else 0,
        letters=first[3] + (last[3] if last else ""),
    )


def _key_of(key: _SortKey, mark: str | None, letters: str) -> Callable[[str], Any]:
    def function(line: str) -> Any:
        if not mark:
            line = line[: limits.MAX_SORTED_FIELDS]  # finding the fields of a long line takes long
        fields = (
            line.split(mark)
            if mark
            else [part for part in _BLANKS_AND_FIELD.findall(line) if part.strip(" \t")]
        )
        joint = mark or ""
        start = key.first - 1
        if start >= len(fields):
            return _value("", letters)
        end = key.last or len(fields)
        if key.last_offset and key.last <= len(fields):
            fields = [*fields[: key.last - 1], fields[key.last - 1][: key.last_offset]]
        text = joint.join(fields[start:end])
        text = text.lstrip() if "b" in letters else text
        return _value(text[key.first_offset - 1 :], letters)

    return function


def _value(text: str, letters: str) -> Any:
    if "V" in letters:
        return [
            int(part) if part.isdecimal() else part
            for part in _VERSION.split(text[: limits.MAX_VERSION])[:64]
        ]
    if "h" in letters:
        match = _NUMBER.match(text)
        unit = text[match.end() : match.end() + 1] if match else ""
        return _UNITS.get(unit, 0), _float(text)
    if "n" in letters or "g" in letters:
        return _float(text)
    text = text.lstrip() if "b" in letters else text
    text = "".join(char for char in text if char.isalnum() or char in " \t") if "d" in letters else text
    return text.upper() if "f" in letters else text


def _float(text: str) -> float:
    match = _NUMBER.match(text)
    try:
        return float(match[1]) if match else 0.0
    except ValueError:
        return 0.0


def unique(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "cduif:s:w:",
        long={
            "count": "c",
            "repeated": "d",
            "unique": "u",
            "ignore-case": "i",
            "skip-fields": "f",
            "skip-chars": "s",
        },
    )
    lines = yield from split_lines((yield from read_all(process, options.arguments[:1])))
    skipped_fields, skipped = number_of(options.get("f", "0")), number_of(options.get("s", "0"))
    width = number_of(options.get("w")) if "w" in options else None

    def key(line: str) -> str:
        start = _end_of_fields(line, skipped_fields) + skipped
        line = line[start:] if width is None else line[start : start + width]
        return line.lower() if "i" in options else line

    groups: list[tuple[str, str, int]] = []
    for part in slices(lines, LINES_AT_ONCE):
        yield CommandStart()
        for line in part:
            value = key(line)
            if groups and groups[-1][0] == value:
                groups[-1] = (value, groups[-1][1], groups[-1][2] + 1)
            else:
                groups.append((value, line, 1))

    def lines_of(groups: Sequence[tuple[str, str, int]]) -> Iterator[str]:
        for _, line, count in groups:
            if ("d" not in options or count > 1) and ("u" not in options or count == 1):
                yield f"{count:7} {line}\n" if "c" in options else f"{line}\n"

    yield from write_lines(groups, lines_of)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"cut": cut, "tr": transliterate, "sort": sort, "uniq": unique}

"""Programs that write and transform text: echo, printf, head, tail, grep and the like."""

import base64
import hashlib
import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import check, contains_match
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import (
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    UnknownProgram,
    read_input,
    write_text,
)
from mockube.controller_manager.kubelet.shell.programs import printf

MAX_SEARCH_STEPS: Final = 200_000_000
"""The maximum product of the instructions of a pattern and the characters of the input: 0.2 s."""
MAX_TEXT: Final = 16 << 20
"""The maximum bytes that a program reads."""
MAX_LINES: Final = 200_000
"""The maximum lines that a program processes one by one: that takes 0.3 s at most, in which nothing else runs."""
BLOCK: Final = 64 * 1024

Data = Generator[Effect, bytes | None, bytes]


def read_all(process: Process, names: Sequence[str]) -> Data:
    """Return the concatenated files of these names, or the input; errors are written as they occur."""
    data = bytearray()
    for name in names or ["-"]:
        if name == "-":
            while block := (yield from read_input(BLOCK)):
                data += block
                if len(data) > MAX_TEXT:
                    yield process.error("the input is too long")
                    break
            continue
        try:
            data += process.host.files.read(process.path(name))
        except FileError as error:
            yield process.error(f"{name}: {error}")
    return bytes(data)


def read_lines(process: Process, names: Sequence[str]) -> Generator[Effect, bytes | None, list[str]]:
    """Return the lines of these files, or of the input; raise `ProgramUsageError` if there are too many."""
    lines = (yield from read_all(process, names)).decode("utf-8", "replace").splitlines()
    if len(lines) > MAX_LINES:
        raise ProgramUsageError("the input has too many lines", 2)
    return lines


def split_options(process: Process, with_values: str = "") -> tuple[dict[str, str], list[str]]:
    """Return the options with their values, and the other arguments; letters in `with_values` have a value."""
    options: dict[str, str] = {}
    rest: list[str] = []
    remaining = deque(process.arguments)
    while remaining:
        argument = remaining.popleft()
        if argument == "--":
            rest += remaining
            break
        if argument[:1] != "-" or argument == "-":
            rest.append(argument)
        elif argument[1].isdigit() and "n" in with_values:
            options["n"] = argument[1:]
        elif argument.startswith("--"):
            name, _, value = argument[2:].partition("=")
            options[name] = value
        else:
            for index, letter in enumerate(argument[1:], start=2):
                if letter in with_values:
                    options[letter] = argument[index:] or (remaining.popleft() if remaining else "")
                    break
                options[letter] = ""
    return options, rest


def echo(process: Process) -> Run:
    arguments = deque(process.arguments)
    newline, escapes = "\n", False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        option = arguments.popleft()
        newline = "" if "n" in option else newline
        escapes = "e" in option or (escapes and "E" not in option)
    text = " ".join(arguments)
    if escapes:
        text, stop, _ = text.partition("\\c")
        text, newline = printf.unescape(text, octal_needs_zero=True), "" if stop else newline
    yield write_text(text + newline)
    return 0


def head(process: Process) -> Run:
    options, names = split_options(process, "nc")
    data = b""
    if "c" in options:
        data = yield from read_all(process, names)
        yield Output(1, data[: int_or_none(options["c"]) or 0])
        return 0
    count = int_or_none(options.get("n", "10")) or 0
    if names:
        data = yield from read_all(process, names)
        yield Output(1, b"".join(data.splitlines(keepends=True)[:count]))
        return 0
    while count > 0 and (block := (yield from read_input(BLOCK))):
        lines = block.splitlines(keepends=True)
        yield Output(1, b"".join(lines[:count]))
        count -= sum(line.endswith(b"\n") for line in lines)
    return 0


def tail(process: Process) -> Run:
    options, names = split_options(process, "nc")
    data = b"" if "f" in options and not names else (yield from read_all(process, names))
    count = options.get("c") or options.get("n") or "10"
    amount = int_or_none(count.lstrip("+-")) or 0
    parts = data if "c" in options else data.splitlines(keepends=True)
    last_parts = (
        parts[max(amount - 1, 0) :]
        if count.startswith("+")
        else parts[len(parts) - min(amount, len(parts)) :]
    )
    yield Output(1, last_parts if isinstance(last_parts, bytes) else b"".join(last_parts))
    if {"f", "F"} & options.keys():
        yield Sleep(float("inf"))
    return 0


def word_count(process: Process) -> Run:
    options, names = split_options(process)
    data = yield from read_all(process, names)
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    selected = [counts[letter] for letter in counts if not options or letter in options]
    yield write_text(" ".join([*map(str, selected), *names[:1]]) + "\n")
    return 0


def grep(process: Process) -> Run:
    options, arguments = split_options(process, "e")
    pattern = options["e"] if "e" in options else arguments.pop(0) if arguments else ""
    source = re.escape(pattern) if "F" in options else pattern
    source = f"(?i){source}" if "i" in options else source
    lines = yield from read_lines(process, arguments)
    try:
        if check(source) * sum(len(line) + 1 for line in lines) > MAX_SEARCH_STEPS:
            yield process.error("the pattern is too large for this input")
            return 2
        matching = [line for line in lines if contains_match(source, line) != ("v" in options)]
    except RegexpError as error:
        yield process.error(str(error))
        return 2
    if "c" in options:
        yield write_text(f"{len(matching)}\n")
    elif "q" not in options:
        yield write_text("".join(f"{line}\n" for line in matching))
    return int(not matching)


def cut(process: Process) -> Run:
    options, names = split_options(process, "dfc")
    lines = yield from read_lines(process, names)
    ranges = [part.partition("-") for part in (options.get("f") or options.get("c") or "1").split(",")]
    mark = options.get("d") or "\t"
    selections = _merge(
        (
            (int_or_none(first or "1") or 1) - 1,
            (int_or_none(last) or 0) if last else sys.maxsize if dash else int_or_none(first) or 0,
        )
        for first, dash, last in ranges
    )
    selected_lines = []
    for line in lines:
        parts = list(line) if "c" in options else line.split(mark)
        selected: list[str] = []
        for start, end in selections:
            if start >= len(parts):
                break
            selected += parts[start:end]
        selected_lines.append(("" if "c" in options else mark).join(selected))
    yield write_text("".join(f"{line}\n" for line in selected_lines))
    return 0


def _merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges without overlap in order: as in coreutils, a part is selected once."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif start < end:
            merged.append((max(start, 0), end))
    return merged


def transliterate(process: Process) -> Run:
    options, sets = split_options(process)
    data = yield from read_all(process, [])
    first = _characters(sets[0]) if sets else ""
    text = data.decode("utf-8", "replace")
    if "d" in options:
        table = dict.fromkeys(map(ord, first))
    else:
        second = _characters(sets[1]) if len(sets) > 1 else first
        table = {ord(char): second[min(index, len(second) - 1)] for index, char in enumerate(first) if second}
    yield write_text(text.translate(table))
    return 0


def _characters(text: str) -> str:
    classes = {"[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9", "[:space:]": " \t\n\r"}
    for name, members in classes.items():
        text = text.replace(name, members)
    return re.sub(
        r"([!-~])-([!-~])",
        lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))),
        printf.unescape(text),
    )


def sort(process: Process) -> Run:
    options, names = split_options(process, "kt")
    if {"k", "t"} & options.keys():
        raise UnknownProgram("sort -k")
    lines = yield from read_lines(process, names)
    ordered = sorted(lines, key=_number) if "n" in options else sorted(lines)
    ordered = list(dict.fromkeys(ordered)) if "u" in options else ordered
    yield write_text("".join(f"{line}\n" for line in (ordered[::-1] if "r" in options else ordered)))
    return 0


def _number(line: str) -> tuple[float, str]:
    match = re.match(r"\s*(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)", line)
    return (float(match[1]) if match else 0.0, line)


def unique(process: Process) -> Run:
    options, names = split_options(process)
    lines = yield from read_lines(process, names)
    groups: list[list[str]] = []
    for line in lines:
        if groups and groups[-1][0] == line:
            groups[-1].append(line)
        else:
            groups.append([line])
    output_lines = [f"{len(group):7} {group[0]}" if "c" in options else group[0] for group in groups]
    yield write_text("".join(f"{line}\n" for line in output_lines))
    return 0


def base64_text(process: Process) -> Run:
    options, names = split_options(process, "w")
    data = yield from read_all(process, names)
    if {"d", "decode"} & options.keys():
        try:
            yield Output(1, base64.b64decode(data))
        except ValueError:
            yield process.error("invalid input")
            return 1
        return 0
    encoded_data = base64.b64encode(data)
    width = int_or_none(options.get("w", "76")) or len(encoded_data) or 1
    if len(encoded_data) > width * MAX_LINES:
        raise ProgramUsageError("the output has too many lines", 2)
    yield Output(
        1,
        b"".join(encoded_data[start : start + width] + b"\n" for start in range(0, len(encoded_data), width)),
    )
    return 0


def _digest(kind: Callable[[bytes], "hashlib._Hash"]) -> Program:
    def digest(process: Process) -> Run:
        code = 0
        for name in process.arguments or ["-"]:
            data = yield from read_all(process, [name])
            if name != "-" and not process.host.files.exists(process.path(name)):
                code = 1
                continue
            yield write_text(f"{kind(data).hexdigest()}  {name}\n")
        return code

    return digest


def reverse(process: Process) -> Run:
    lines = yield from read_lines(process, process.arguments)
    yield write_text("".join(f"{line[::-1]}\n" for line in lines))
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "echo": echo,
    "printf": printf.printf,
    "head": head,
    "rev": reverse,
    "tail": tail,
    "wc": word_count,
    "grep": grep,
    "egrep": grep,
    "cut": cut,
    "tr": transliterate,
    "sort": sort,
    "uniq": unique,
    "base64": base64_text,
    "md5sum": _digest(lambda data: hashlib.md5(data, usedforsecurity=False)),
    "sha1sum": _digest(lambda data: hashlib.sha1(data, usedforsecurity=False)),
    "sha256sum": _digest(hashlib.sha256),
}

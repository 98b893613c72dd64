"""Programs that compare files: diff and cmp."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Process,
    Program,
    ProgramUsageError,
    Run,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .inputs import LINES_AT_ONCE, InputFile, Inputs, Lines, read_files, split_lines, write_lines

_CONTEXT: Final = 3
_COMPARED_AT_ONCE: Final = 4096


def diff(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "abdiNqrTtwsuU:L:",
        long={
            "unified": "u",
            "brief": "q",
            "recursive": "r",
            "ignore-all-space": "w",
            "ignore-case": "i",
            "report-identical-files": "s",
            "label": "L",
            "new-file": "N",
        },
        code=2,
    )
    if len(options.arguments) != 2:
        raise ProgramUsageError("usage: diff [-abdiNqrTtw] [-U N] FILE1 FILE2", 2)
    left, right = options.arguments
    files = process.host.files
    if all(name != "-" and _is_directory(process, name) for name in (left, right)):
        names = sorted({*files.children(process.path(left)), *files.children(process.path(right))})
        code = 0
        for name in names:
            code = (yield from _diff_entry(process, options, left, right, name)) or code
        return code
    if _is_directory(process, right):
        right = f"{right}/{left.rpartition('/')[2]}"
    return (yield from _diff_files(process, options, left, right))


def _is_directory(process: Process, name: str) -> bool:
    try:
        return process.host.files.entry(process.path(name)).is_directory
    except FileError:
        return False


def _diff_entry(process: Process, options: ProgramOptions, left: str, right: str, name: str) -> Run:
    files = process.host.files
    first, second = f"{left.rstrip('/')}/{name}", f"{right.rstrip('/')}/{name}"
    for folder, path in ((right, first), (left, second)):
        other = second if path == first else first
        if not files.exists(process.path(other)) and "N" not in options:
            yield write_text(f"Only in {left if folder == right else right}: {name}\n")
            return 1
    if _is_directory(process, first) and _is_directory(process, second):
        if "r" not in options:
            yield write_text(f"Common subdirectories: {first} and {second}\n")
            return 0
        child = process.with_arguments(
            ["diff", *(f"-{letter}" for letter in "rqwiNbs" if letter in options), first, second]
        )
        return (yield from diff(child))
    return (yield from _diff_files(process, options, first, second))


def _normalize(line: str, options: ProgramOptions) -> str:
    line = "".join(line.split()) if "w" in options else " ".join(line.split()) if "b" in options else line
    return line.lower() if "i" in options else line


def _normalized(lines: Sequence[str], options: ProgramOptions) -> Lines:
    keys: list[str] = []
    for part in slices(lines, LINES_AT_ONCE):
        yield CommandStart()
        keys += [_normalize(line, options) for line in part]
    return keys


def _diff_files(process: Process, options: ProgramOptions, left: str, right: str) -> Run:
    inputs = Inputs()
    for name in (left, right):
        if "N" in options and name != "-" and not process.host.files.exists(process.path(name)):
            inputs.append(InputFile(name, b""))
            continue
        content = yield from read_files(process, [name], prefix="open", code=2)
        if content.code:
            return 2
        inputs += content
    first, second = inputs[0].data, inputs[1].data
    lines, keys = [], []
    for data in (first, second):
        lines.append((yield from split_lines(data)))
        keys.append((yield from _normalized(lines[-1], options)))
    if first == second or (options.has_any("wbi") and keys[0] == keys[1]):
        if "s" in options:
            yield write_text(f"Files {left} and {right} are identical\n")
        return 0
    if "q" in options:
        yield write_text(f"Files {left} and {right} differ\n")
        return 1
    if max(map(len, lines)) > limits.MAX_COMPARED:
        raise ProgramUsageError("the files have too many lines", 2)
    labels = options.all("L")
    names = [*labels[:2], *(left, right)[len(labels[:2]) :]]
    yield write_text(f"--- {names[0]}\n+++ {names[1]}\n")
    open_ends = [bool(data) and not data.endswith(b"\n") for data in (first, second)]
    context = int(options.get("U")) if options.get("U").isdecimal() else _CONTEXT
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        yield write_text("".join(_hunk(group, lines, open_ends)))
    return 1


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], lines: Sequence[Sequence[str]], open_ends: Sequence[bool]
) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@\n"
    for tag, start, end, other_start, other_end in group:
        if tag == "equal":
            yield from _mark_lines(" ", lines[0], start, end, is_open=open_ends[0])
            continue
        yield from _mark_lines("-", lines[0], start, end, is_open=open_ends[0])
        yield from _mark_lines("+", lines[1], other_start, other_end, is_open=open_ends[1])


def _mark_lines(mark: str, lines: Sequence[str], start: int, end: int, *, is_open: bool) -> Iterator[str]:
    for index in range(start, end):
        yield f"{mark}{lines[index]}\n"
        if is_open and index == len(lines) - 1:
            yield "\\ No newline at end of file\n"


def _span(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def compare_bytes(process: Process) -> Run:
    options = parse_options(
        process.arguments, "lsn:", long={"silent": "s", "quiet": "s", "verbose": "l"}, code=2
    )
    if not 1 <= len(options.arguments) <= 2:
        raise ProgramUsageError("usage: cmp [-ls] [-n NUM] FILE1 [FILE2]", 2)
    names = [*options.arguments, "-"][:2]
    inputs = yield from read_files(process, names, prefix="open", code=2)
    if inputs.code:
        return 2
    first, second = (file.data for file in inputs)
    if "n" in options and options.get("n").isdecimal():
        limit = int(options.get("n")[:15])
        first, second = first[:limit], second[:limit]
    if first == second:
        return 0
    size = min(len(first), len(second))
    start = next(
        (
            at
            for at in range(0, size, _COMPARED_AT_ONCE)
            if first[at : at + _COMPARED_AT_ONCE] != second[at : at + _COMPARED_AT_ONCE]
        ),
        size,
    )
    position = next((index for index in range(start, size) if first[index] != second[index]), size)
    if "s" in options:
        return 1
    if position == size:
        shorter = names[0] if len(first) < len(second) else names[1]
        yield process.error(f"EOF on {shorter}")
        return 1
    if "l" in options:
        yield from write_lines(
            range(start, size),
            lambda part: (
                f"{index + 1:4} {first[index]:3o} {second[index]:3o}\n"
                for index in part
                if first[index] != second[index]
            ),
        )
        return 1
    line = first.count(b"\n", 0, position) + 1
    yield write_text(f"{names[0]} {names[1]} differ: char {position + 1}, line {line}\n")
    return 1


PROGRAMS: Final[Mapping[str, Program]] = {"diff": diff, "cmp": compare_bytes}

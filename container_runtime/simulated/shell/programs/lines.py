"""Programs that select, number, count and join lines: head, tail, wc, tac, rev, nl, fold, paste, comm, split, tee and the like."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.devices import DEVICE_BYTES, ZERO
from mockube.container_runtime.simulated.shell.filesystem import FileError
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    DescriptorStream,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    WaitUntil,
    fill_memory,
    read_input,
    write_text,
)
from mockube.container_runtime.simulated.shell.redirection import open_output

from .inputs import BLOCK, number_of, read_all, read_files, read_standard_input, split_lines
from .printf import unescape

FOREVER: Final = float("inf")
_FILLED: Final = 256 << 10
"""The bytes that tail keeps before they count as used memory: far fewer than a computation in advance may move, so that it ends by memory."""


def _headers(names: Sequence[str], options: ProgramOptions, name: str, index: int) -> bytes:
    """Return the line before a file, which is written if there are several, and unless an option says otherwise."""
    shows = (len(names) > 1 or "v" in options) and "q" not in options
    title = "standard input" if name == "-" else name
    return f"{chr(10) if index else ''}==> {title} <==\n".encode() if shows else b""


_LONG: Final = {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"}


def head(process: Process) -> Run:
    options = parse_options(process.arguments, "n:c:qv", long=_LONG, numbers="n")
    is_bytes = "c" in options
    text = options.get("c") if is_bytes else options.get("n", "10")
    drops_end = text.startswith("-")
    count = number_of(text.lstrip("-"))
    if not options.arguments and not drops_end:
        return (yield from _head_of_input(count, is_bytes=is_bytes))
    if is_bytes and not drops_end and [*map(process.path, options.arguments)] == [ZERO]:
        return (yield from _head_of_zeros(count))
    inputs = yield from read_files(process, options.arguments)
    for index, (name, data) in enumerate(inputs):
        parts: Sequence[bytes] | bytes = data if is_bytes else data.splitlines(keepends=True)
        selected = parts[: max(len(parts) - count, 0)] if drops_end else parts[:count]
        content = selected if isinstance(selected, bytes) else b"".join(selected)
        yield Output(1, _headers(options.arguments, options, name, index) + content)
    return inputs.code


def _head_of_input(count: int, *, is_bytes: bool) -> Run:
    while count > 0 and (block := (yield from read_input(min(BLOCK, count) if is_bytes else BLOCK))):
        if is_bytes:
            yield Output(1, block)
            count -= len(block)
            continue
        lines = block.split(b"\n", count)
        rest = lines.pop()
        count -= len(lines)
        yield Output(1, b"".join(line + b"\n" for line in lines) + (rest if count else b""))
    return 0


def _head_of_zeros(count: int) -> Run:
    """Write as many bytes of /dev/zero."""
    block = bytes(min(count, DEVICE_BYTES))
    for _ in range(count // len(block) if block else 0):
        yield Output(1, block)
    yield Output(1, block[: count % len(block)] if block else b"")
    return 0


def tail(process: Process) -> Run:
    arguments = list(process.arguments)
    if arguments and arguments[0][:1] == "+" and arguments[0][1:].isdecimal():
        arguments[0] = f"-n{arguments[0]}"
    options = parse_options(
        arguments, "n:c:qvfFs:", long={**_LONG, "follow": "f", "retry": "F", "pid": "pid="}, numbers="n"
    )
    follows = options.has_any("fF")
    is_bytes = "c" in options
    text = options.get("c") if is_bytes else options.get("n", "10")
    count = number_of(text.lstrip("+-"))
    if not options.arguments and not text.startswith("+"):
        yield from _tail_of_input(process, count, is_bytes=is_bytes)
        if not follows:
            return 0
    elif follows and not options.arguments:
        data_read = yield from read_standard_input(process)
        yield Output(1, _tail_of(data_read, count, text, is_bytes=is_bytes))
    else:
        inputs = yield from read_files(process, options.arguments, prefix="open")
        for index, (name, data) in enumerate(inputs):
            yield Output(1, _headers(options.arguments, options, name, index))
            yield Output(1, _tail_of(data, count, text, is_bytes=is_bytes))
        if not follows:
            return inputs.code
        names = options.arguments if "F" in options else [name for name, _ in inputs]
        if not names:
            yield process.error("no files remaining" if process.host.has_gnu_programs else "no files")
            return 1
        return (yield from _follow(process, names, options))
    yield Sleep(FOREVER)
    return 0


def _tail_of_input(process: Process, count: int, *, is_bytes: bool) -> Run:
    """Write the end of the input, and keep no more of it in memory than that."""
    last_bytes, size, filled = b"", 0, 0
    while block := (yield from read_input(DEVICE_BYTES)):
        size += len(block)
        if is_bytes or b"\n" in block or size <= DEVICE_BYTES:
            last_bytes = _tail_of(last_bytes + block, count, "", is_bytes=is_bytes)
            size = len(last_bytes)
        else:  # of a line as long, only the size counts
            last_bytes = block
        if size - filled >= _FILLED:
            yield from fill_memory(process, size - filled)
            filled = size
    yield Output(1, last_bytes)
    return 0


def _follow(process: Process, names: Sequence[str], options: ProgramOptions) -> Run:
    """Write what other processes append to files, until the process of `--pid` ends, or for ever."""
    processes, files = process.processes, process.host.files
    sizes = {name: _size(process, name) for name in names}
    pid, latest = options.get("pid"), names[-1]

    def has_changed() -> bool:
        return any(_size(process, name) != size for name, size in sizes.items())

    def is_over() -> bool:
        return pid.isdecimal() and all(child.pid != int(pid[:9]) for child in processes.children())

    while not is_over():
        yield WaitUntil(lambda: has_changed() or is_over(), watches_files=True)
        for name, before in list(sizes.items()):
            size = _size(process, name)
            if size == before:
                continue
            sizes[name] = size
            if "F" in options and None in (size, before):
                yield process.error(_notice(process, name, appears=before is None))
            if size is None:
                continue
            start = before if before is not None and before < size else 0  # A shorter file is a new one.
            if name != latest:
                yield Output(1, _headers(names, options, name, 1))
                latest = name
            if sizes[name]:
                yield Output(1, files.read(process.path(name))[start:])
    return 0


def _size(process: Process, name: str) -> int | None:
    """Return the size of a file; None if there is no such file."""
    try:
        return process.host.files.entry(process.path(name)).size
    except FileError:
        return None


def _notice(process: Process, name: str, *, appears: bool) -> str:
    """Return what tail reports of a file that it follows by its name."""
    if process.host.has_gnu_programs:
        return (
            f"'{name}' has appeared;  following new file"
            if appears
            else f"'{name}' has become inaccessible: No such file or directory"
        )
    return (
        f"{name} has appeared; following end of new file"
        if appears
        else f"{name} has been renamed or deleted: No such file or directory"
    )


def _tail_of(data: bytes, count: int, text: str, *, is_bytes: bool) -> bytes:
    parts: Sequence[bytes] | bytes = data if is_bytes else data.splitlines(keepends=True)
    start = max(count - 1, 0) if text.startswith("+") else max(len(parts) - count, 0)
    selected = parts[start:]
    return selected if isinstance(selected, bytes) else b"".join(selected)


def word_count(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "lwcmL",
        long={"lines": "l", "words": "w", "bytes": "c", "chars": "m", "max-line-length": "L"},
    )
    letters = [letter for letter in "lwmcL" if letter in options] or list("lwc")
    if not options.arguments and not {"m", "L"} & set(letters):
        return (yield from _count_input(letters))
    inputs = yield from read_files(process, options.arguments)
    rows = [(name, [_count(data, letter) for letter in letters]) for name, data in inputs]
    if len(options.arguments) > 1:
        totals = [sum(column) for column in zip(*(row for _, row in rows), strict=True)] or [0] * len(letters)
        rows.append(("total", totals))
    is_single = len(letters) == 1 and len(rows) == 1
    for name, row in rows:
        label = "" if name == "-" and not options.arguments else name
        yield write_text(_count_line(label, row, is_single=is_single))
    return inputs.code


def _count_input(letters: Sequence[str]) -> Run:
    """Count the lines, words and bytes of the input, of which nothing is kept."""
    totals = dict.fromkeys(letters, 0)
    is_in_word = False
    while block := (yield from read_input(BLOCK)):
        for letter in letters:
            totals[letter] += _count(block, letter)
        if "w" in totals and is_in_word and not block[:1].isspace():
            totals["w"] -= 1  # The first word is the rest of the last one.
        is_in_word = not block[-1:].isspace()
    yield write_text(_count_line("", [*totals.values()], is_single=len(letters) == 1))
    return 0


def _count_line(name: str, counts: Sequence[int], *, is_single: bool) -> str:
    text = str(counts[0]) if is_single else " ".join(f"{count:9}" for count in counts)
    return f"{text} {name}\n" if name else f"{text}\n"


def _count(data: bytes, letter: str) -> int:
    match letter:
        case "l":
            return data.count(b"\n")
        case "w":
            return len(data.split())
        case "m":
            return len(data.decode("utf-8", "replace"))
        case "L":
            return max((len(line) for line in data.decode("utf-8", "replace").split("\n")), default=0)
        case _:
            return len(data)


def tac(process: Process) -> Run:
    options = parse_options(process.arguments, "")
    inputs = yield from read_files(process, options.arguments)
    for _, data in inputs:
        yield Output(1, b"".join(data.splitlines(keepends=True)[::-1]))
    return inputs.code


def reverse(process: Process) -> Run:
    options = parse_options(process.arguments, "")
    inputs = yield from read_files(process, options.arguments)
    for _, data in inputs:
        end = "\n" if data.endswith(b"\n") else ""
        yield write_text("\n".join(line[::-1] for line in split_lines(data)) + end)
    return inputs.code


def number_lines(process: Process) -> Run:
    options = parse_options(process.arguments, "b:i:s:v:w:")
    style, separator = options.get("b", "t"), options.get("s", "\t")
    number, step = number_of(options.get("v", "1")), number_of(options.get("i", "1"))
    width = number_of(options.get("w", "6"))
    if style not in ("a", "t", "n"):
        raise ProgramUsageError(f"-b {style} is not simulated")
    inputs = yield from read_files(process, options.arguments)
    output = []
    for line in split_lines(inputs.data):
        if style == "a" or (style == "t" and line):
            output.append(f"{number:{width}}{separator}{line}\n")
            number += step
        else:
            output.append(f"{' ' * (width + len(separator))}{line}\n")
    yield write_text("".join(output))
    return inputs.code


def fold(process: Process) -> Run:
    options = parse_options(process.arguments, "bsw:", numbers="w")
    width = number_of(options.get("w", "80"), 1)
    inputs = yield from read_files(process, options.arguments)
    text = inputs.data.decode("utf-8", "surrogateescape")
    if len(text) > width * limits.MAX_LINES:
        raise ProgramUsageError("the output has too many lines", 2)
    lines = ["\n".join(_wrap(line, width, at_blanks="s" in options)) for line in text.split("\n")]
    yield write_text("\n".join(lines))
    return inputs.code


def _wrap(line: str, width: int, *, at_blanks: bool) -> Iterator[str]:
    start = 0
    while len(line) - start > width:
        end = start + width
        blank = line.rfind(" ", start, end) if at_blanks else -1
        end = blank + 1 if blank >= start else end
        yield line[start:end]
        start = end
    yield line[start:]


def paste(process: Process) -> Run:
    options = parse_options(process.arguments, "sd:")
    marks = unescape(options.get("d", "\t")) or "\0"
    inputs = yield from read_files(process, options.arguments)
    columns = [split_lines(data) for _, data in inputs]
    if options.arguments.count("-") > 1:
        lines, count = next(split_lines(file.data) for file in inputs if file.name == "-"), len(inputs)
        columns = [lines[start::count] for start in range(count)]
    rows = columns if "s" in options else [list(row) for row in zip_longest(*columns, fillvalue="")]
    yield write_text("".join(f"{_join(row, marks)}\n" for row in rows))
    return inputs.code


def _join(fields: Sequence[str], marks: str) -> str:
    parts = list(fields[:1])
    for index, field in enumerate(fields[1:]):
        mark = marks[index % len(marks)]
        parts += ["" if mark == "\0" else mark, field]
    return "".join(parts)


def compare_sorted(process: Process) -> Run:
    options = parse_options(process.arguments, "123")
    if len(options.arguments) != 2:
        raise ProgramUsageError("usage: comm [-123] FILE1 FILE2")
    inputs = yield from read_files(process, options.arguments)
    if len(inputs) < 2:
        return 1
    left, right = (split_lines(data) for _, data in inputs)
    output, first, second = [], 0, 0
    while first < len(left) or second < len(right):
        if second >= len(right) or (first < len(left) and left[first] < right[second]):
            column, line, first = 1, left[first], first + 1
        elif first >= len(left) or right[second] < left[first]:
            column, line, second = 2, right[second], second + 1
        else:
            column, line, first, second = 3, left[first], first + 1, second + 1
        if str(column) not in options:
            tabs = sum(str(other) not in options for other in range(1, column))
            output.append("\t" * tabs + line + "\n")
    yield write_text("".join(output))
    return inputs.code


def tee(process: Process) -> Run:
    options = parse_options(process.arguments, "ai", long={"append": "a"})
    outputs: list[tuple[str, DescriptorStream]] = []
    code = 0
    for name in options.arguments:
        try:
            outputs.append((name, open_output(process, name, appends="a" in options)))
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
    while block := (yield from read_input(BLOCK)):
        yield Output(1, block)
        for name, stream in outputs:
            try:
                yield from stream.write(block)
            except FileError as error:
                yield process.error(f"{name}: {error}")
                code = 1
    return code


def split_file(process: Process) -> Run:
    options = parse_options(process.arguments, "l:b:a:", numbers="l")
    name, prefix, *_ = [*options.arguments, "-", "x"][: 2 if len(options.arguments) < 2 else None]
    if len(options.arguments) == 1:
        prefix = "x"
    data = yield from read_all(process, [name] if name != "-" else [])
    if "b" in options:
        size = number_of(options.get("b"), 1)
        parts = [data[start : start + size] for start in range(0, len(data), size)]
    else:
        lines, count = data.splitlines(keepends=True), number_of(options.get("l", "1000"), 1)
        parts = [b"".join(lines[start : start + count]) for start in range(0, len(lines), count)]
    width = number_of(options.get("a", "2"), 1)
    if len(parts) > min(26**width, 10_000):
        raise ProgramUsageError("suffixes exhausted")
    for index, part in enumerate(parts):
        suffix = "".join(chr(97 + index // 26**place % 26) for place in reversed(range(width)))
        modified = process.host.now_running(is_shown=True).timestamp()
        process.host.files.write(process.path(prefix + suffix), part, modified=modified)
    process.host.changes += 1
    return 0


def expand_tabs(process: Process) -> Run:
    options = parse_options(process.arguments, "it:", long={"tabs": "t", "initial": "i"})
    inputs = yield from read_files(process, options.arguments)
    text = inputs.data.decode("utf-8", "surrogateescape")
    yield write_text(text.expandtabs(number_of(options.get("t", "8"), 1)))
    return inputs.code


PROGRAMS: Final[Mapping[str, Program]] = {
    "head": head,
    "tail": tail,
    "wc": word_count,
    "tac": tac,
    "rev": reverse,
    "nl": number_lines,
    "fold": fold,
    "paste": paste,
    "comm": compare_sorted,
    "tee": tee,
    "split": split_file,
    "expand": expand_tabs,
}

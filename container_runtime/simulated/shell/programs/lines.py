"""Programs that select, number, count and join lines: head, tail, wc, tac, rev, nl, fold, paste, comm, split, tee and the like."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.devices import DEVICE_BYTES, ZERO
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    DescriptorStream,
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    WaitUntil,
    count_work,
    decoded,
    fill_memory,
    read_input,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.redirection import open_output
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .inputs import (
    BLOCK,
    FILES_AT_ONCE,
    LINES_AT_ONCE,
    number_of,
    read_all,
    read_files,
    read_standard_input,
    split_lines,
    write_lines,
)
from .printf import unescape

FOREVER: Final = float("inf")
_FOUND_AT_ONCE: Final = 200
"""The ends of lines that are found in the time of a command."""
_COUNTED_AT_ONCE: Final = 4096
"""The bytes that wc counts in the time of a command."""
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
        find_end = _start_of_last if drops_end else _end_of_first
        end = yield from find_end(data, count, is_bytes=is_bytes)
        yield Output(1, _headers(options.arguments, options, name, index) + data[:end])
    return inputs.code


def _head_of_input(count: int, *, is_bytes: bool) -> Run:
    while count > 0 and (block := (yield from read_input(min(BLOCK, count) if is_bytes else BLOCK))):
        if is_bytes:
            yield Output(1, block)
            count -= len(block)
            continue
        yield from count_work(len(block), _COUNTED_AT_ONCE)
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
        yield from _write_tail(data_read, count, text, is_bytes=is_bytes)
    else:
        inputs = yield from read_files(process, options.arguments, prefix="open")
        for index, (name, data) in enumerate(inputs):
            yield Output(1, _headers(options.arguments, options, name, index))
            yield from _write_tail(data, count, text, is_bytes=is_bytes)
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
    last, lines, size, filled = bytearray(), 0, 0, 0
    while block := (yield from read_input(DEVICE_BYTES)):
        added = block.count(b"\n")
        size += len(block)
        if is_bytes or added or size <= DEVICE_BYTES:
            last += block
            lines += added
            if (len(last) if is_bytes else lines) > 2 * count:
                del last[: (yield from _start_of_last(last, count, is_bytes=is_bytes))]
                lines = last.count(b"\n")
            size = len(last)
        else:  # of a line as long, only the size counts
            last[:] = block
        if size - filled >= _FILLED:
            yield from fill_memory(process, size - filled)
            filled = size
        if len(last) > limits.MAX_INPUT:
            raise ProgramUsageError("the input is too long")
    yield Output(1, bytes(last[(yield from _start_of_last(last, count, is_bytes=is_bytes)) :]))
    return 0


def _start_of_last(
    data: bytes | bytearray, count: int, *, is_bytes: bool
) -> Generator[Effect, bytes | None, int]:
    """Return where the last bytes or lines begin."""
    if is_bytes or not count:
        return max(len(data) - count, 0)
    position = len(data) - data.endswith(b"\n")
    for number in range(count):
        if number % _FOUND_AT_ONCE == _FOUND_AT_ONCE - 1:
            yield CommandStart()
        position = data.rfind(b"\n", 0, position)
        if position < 0:
            return 0
    return position + 1


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


def _write_tail(data: bytes, count: int, text: str, *, is_bytes: bool) -> Run:
    if text.startswith("+"):
        start = yield from _end_of_first(data, max(count - 1, 0), is_bytes=is_bytes)
    else:
        start = yield from _start_of_last(data, count, is_bytes=is_bytes)
    yield Output(1, data[start:])
    return 0


def _end_of_first(data: bytes, count: int, *, is_bytes: bool) -> Generator[Effect, bytes | None, int]:
    """Return where the first bytes or lines end."""
    if is_bytes:
        return min(count, len(data))
    position = 0
    for number in range(count):
        if number % _FOUND_AT_ONCE == _FOUND_AT_ONCE - 1:
            yield CommandStart()
        position = data.find(b"\n", position) + 1
        if not position:
            return len(data)
    return position


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
    rows = []
    for number, (name, data) in enumerate(inputs, start=1):
        if not number % FILES_AT_ONCE:
            yield CommandStart()
        counts: dict[str, int] = {}
        for letter in letters:
            counts[letter] = yield from _count_all(data, letter)
        rows.append((name, [*counts.values()]))
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
        yield from count_work(len(block), _COUNTED_AT_ONCE)
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


def _count_all(data: bytes, letter: str) -> Generator[Effect, bytes | None, int]:
    """Count the lines, words, bytes, characters, or the characters of the longest line of a file."""
    if letter == "m":
        return len((yield from decoded(data)))
    if letter == "L":
        maximum = 0
        for part in slices((yield from split_lines(data)), LINES_AT_ONCE):
            yield CommandStart()
            maximum = max(maximum, *map(len, part))
        return maximum
    total, is_in_word = 0, False
    for block in slices(data, BLOCK):
        yield from count_work(len(block), _COUNTED_AT_ONCE)
        total += _count(block, letter) - (letter == "w" and is_in_word and not block[:1].isspace())
        is_in_word = not block[-1:].isspace()
    return total


def _count(data: bytes, letter: str) -> int:
    match letter:
        case "l":
            return data.count(b"\n")
        case "w":
            return len(data.split())
        case _:
            return len(data)


def tac(process: Process) -> Run:
    options = parse_options(process.arguments, "")
    inputs = yield from read_files(process, options.arguments)
    for _, data in inputs:
        lines = yield from split_lines(data)
        is_open = bool(data) and not data.endswith(b"\n")
        if is_open:
            yield write_text(lines.pop())
        yield from write_lines(lines[::-1], lambda part: (f"{line}\n" for line in part))
    return inputs.code


def reverse(process: Process) -> Run:
    options = parse_options(process.arguments, "")
    inputs = yield from read_files(process, options.arguments)
    for _, data in inputs:
        lines = yield from split_lines(data)
        last = lines.pop()[::-1] if data and not data.endswith(b"\n") else ""
        yield from write_lines(lines, lambda part: (f"{line[::-1]}\n" for line in part))
        yield write_text(last)
    return inputs.code


def number_lines(process: Process) -> Run:
    options = parse_options(process.arguments, "b:i:s:v:w:")
    style, separator = options.get("b", "t"), options.get("s", "\t")
    number, step = number_of(options.get("v", "1")), number_of(options.get("i", "1"))
    width = number_of(options.get("w", "6"))
    if style not in ("a", "t", "n"):
        raise ProgramUsageError(f"-b {style} is not simulated")
    inputs = yield from read_files(process, options.arguments)

    def numbered(lines: Sequence[str]) -> Iterator[str]:
        nonlocal number
        for line in lines:
            if style == "a" or (style == "t" and line):
                yield f"{number:{width}}{separator}{line}\n"
                number += step
            else:
                yield f"{' ' * (width + len(separator))}{line}\n"

    yield from write_lines((yield from split_lines(inputs.data)), numbered)
    return inputs.code


def fold(process: Process) -> Run:
    options = parse_options(process.arguments, "bsw:", numbers="w")
    width = number_of(options.get("w", "80"), 1)
    inputs = yield from read_files(process, options.arguments)
    data = inputs.data
    if len(data) > width * limits.MAX_LINES:
        raise ProgramUsageError("the output has too many lines", 2)
    lines = yield from split_lines(data)
    rows = (row for line in lines for row in _wrap(line, width, at_blanks="s" in options))
    mark = ""
    while part := [*islice(rows, LINES_AT_ONCE)]:
        yield from count_work(sum(map(len, part)) + _COUNTED_AT_ONCE, _COUNTED_AT_ONCE)
        yield write_text(mark + "\n".join(part))
        mark = "\n"
    yield write_text("\n" if data.endswith(b"\n") else "")
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
    columns = []
    for _, data in inputs:
        columns.append((yield from split_lines(data)))
    if options.arguments.count("-") > 1:
        count = len(inputs)
        lines = next(column for file, column in zip(inputs, columns, strict=True) if file.name == "-")
        columns = [lines[start::count] for start in range(count)]
    if "s" in options:
        for column in columns:
            yield from _write_joined(column, marks)
        return inputs.code
    if len(columns) * max(map(len, columns), default=0) > limits.MAX_SORTED_LINES:
        raise ProgramUsageError("the input has too many lines", 2)
    rows = zip_longest(*columns, fillvalue="")
    size = max(LINES_AT_ONCE // max(len(columns), 1), 1)
    while part := [*islice(rows, size)]:
        yield CommandStart()
        yield write_text("".join(f"{_join(row, marks)}\n" for row in part))
    return inputs.code


def _write_joined(fields: Sequence[str], marks: str) -> Run:
    """Write fields as one line, with the marks between them in turn."""
    for start in range(0, len(fields), LINES_AT_ONCE):
        yield CommandStart()
        part = fields[start : start + LINES_AT_ONCE]
        mark = marks[(start - 1) % len(marks)] if start else "\0"
        turn = start % len(marks)
        yield write_text(("" if mark == "\0" else mark) + _join(part, marks[turn:] + marks[:turn]))
    yield write_text("\n")
    return 0


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
    left = yield from split_lines(inputs[0].data)
    right = yield from split_lines(inputs[1].data)
    output: list[str] = []
    first = second = 0
    while first < len(left) or second < len(right):
        if len(output) >= LINES_AT_ONCE:
            yield CommandStart()
            yield write_text("".join(output))
            output.clear()
        if second >= len(right) or (first < len(left) and left[first] < right[second]):
            column, line, first = 1, left[first], first + 1
        elif first >= len(left) or right[second] < left[first]:
            column, line, second = 2, right[second], second + 1
        else:
            column, line, first, second = 3, left[first], first + 1, second + 1
        tabs = sum(str(other) not in options for other in range(1, column))
        output.append("" if str(column) in options else "\t" * tabs + line + "\n")
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
        count_of_parts = -(-len(data) // size)
        parts: Iterable[bytes] = slices(data, size)
    else:
        lines, count = (yield from split_lines(data)), number_of(options.get("l", "1000"), 1)
        count_of_parts = -(-len(lines) // count)
        parts = (_joined_lines(part) for part in slices(lines, count))
    width = number_of(options.get("a", "2"), 1)
    if count_of_parts > (10_000 if width > 3 else min(26**width, 10_000)):
        raise ProgramUsageError("suffixes exhausted")
    for index, part in enumerate(parts):
        yield CommandStart()
        suffix = "".join(chr(97 + index // 26**place % 26) for place in reversed(range(width)))
        modified = process.host.now_running(is_shown=True).timestamp()
        process.host.files.write(process.path(prefix + suffix), part, modified=modified)
    process.host.changes += 1
    return 0


def _joined_lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def expand_tabs(process: Process) -> Run:
    options = parse_options(process.arguments, "it:", long={"tabs": "t", "initial": "i"})
    width = number_of(options.get("t", "8"), 1)
    inputs = yield from read_files(process, options.arguments)
    data = inputs.data
    if data.count(b"\t") * width > limits.MAX_PADDING:
        raise ProgramUsageError("the output is too long")
    lines = yield from split_lines(data)
    last = lines.pop() if data and not data.endswith(b"\n") else ""
    yield from write_lines(lines, lambda part: (f"{line.expandtabs(width)}\n" for line in part))
    yield write_text(last.expandtabs(width))
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

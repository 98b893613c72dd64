"""The input of programs: files by name, or the standard input."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.devices import NULL, descriptor_number, read_device
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    DescriptorStream,
    Effect,
    Process,
    ProgramUsageError,
    Steps,
    count_work,
    decoded,
    read_input,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError, NoSuchFile

from .endless_reads import before_read

BLOCK: Final = 64 * 1024
_BYTES_PER_COMMAND: Final = 1 << 18
_SPLIT_PER_COMMAND: Final = 1 << 15
LINES_AT_ONCE: Final = 100
"""The lines with which a program works in the time of a command."""

FILES_AT_ONCE: Final = 5
"""The files with which a program works in the time of a command."""

T = TypeVar("T")


class InputFile(NamedTuple):
    name: str
    data: bytes


Data = Generator[Effect, bytes | None, bytes]
Lines = Generator[Effect, bytes | None, list[str]]


class Inputs(list[InputFile]):
    """The files that could be read, and the exit code for the others."""

    code = 0

    @property
    def data(self) -> bytes:
        return b"".join(file.data for file in self)


def walk(process: Process, path: str) -> Generator[Effect, bytes | None, list[str]]:
    """Return a path and all paths below it, each folder before its contents."""
    paths: list[str] = []
    for each in process.host.files.walk(path):
        paths.append(each)
        if not len(paths) % FILES_AT_ONCE:
            yield CommandStart()
    return paths


def read_standard_input(process: Process) -> Data:
    return (yield from _read_to_end(process, read_input))


def _read_to_end(process: Process, read: Callable[[int], Data]) -> Data:
    data = bytearray()
    while block := (yield from read(BLOCK)):
        data += block
        process.processes.keep(len(block))
        if len(data) > limits.MAX_INPUT:
            yield process.error("the input is too long")
            break
    yield from count_work(len(data), _BYTES_PER_COMMAND)
    return bytes(data)


def open_descriptor(process: Process, name: str) -> DescriptorStream | None:
    """Return the open descriptor that a name such as /dev/stdin stands for; None for a file. Raise `FileError` if it is closed."""
    number = descriptor_number(process.path(name))
    if number is None:
        return None
    stream = process.descriptors.get(number)
    if stream is None:
        raise NoSuchFile
    return stream


def read_path(process: Process, name: str) -> Data:
    """Return what a file, a device or an open descriptor contains; raise `FileError`."""
    path = process.path(name)
    if path == NULL:
        return b""
    stream = open_descriptor(process, name)
    if stream is None:
        yield from before_read(process, path)
        content = read_device(process.host, path)
        return process.host.files.read(path) if content is None else content
    return (yield from _read_to_end(process, stream.read))


def read_operand(process: Process, name: str) -> Data:
    """Return the standard input for `-`, or else what a path contains; raise `FileError`."""
    return (yield from (read_standard_input(process) if name == "-" else read_path(process, name)))


def read_files(
    process: Process, names: Sequence[str], *, prefix: str = "", code: int = 1
) -> Generator[Effect, bytes | None, Inputs]:
    """Read files, or the standard input without names; errors are reported as they occur."""
    inputs = Inputs()
    size = 0
    for number, name in enumerate(names or ["-"], start=1):
        if not number % FILES_AT_ONCE:
            yield CommandStart()
        if size > limits.MAX_INPUT:
            raise ProgramUsageError("the input is too long", 2)
        try:
            data = yield from read_operand(process, name)
        except FileError as error:
            words = f"can't open '{name}': {error}" if prefix else f"{name}: {error}"
            yield process.error(words)
            inputs.code = code
            continue
        inputs.append(InputFile(name, data))
        size += len(data)
    return inputs


def split_lines(data: bytes, end: str = "\n", maximum: int = limits.MAX_LINES) -> Lines:
    """Return the lines without their ends; raise `ProgramUsageError` if there are too many."""
    yield from count_work(len(data), _BYTES_PER_COMMAND)
    if data.count(end.encode()) > maximum:
        raise ProgramUsageError("the input has too many lines", 2)
    text = yield from decoded(data)
    yield from count_work(len(text), _SPLIT_PER_COMMAND)
    lines = text.split(end)
    if lines[-1] == "":
        lines.pop()
    return lines


def write_lines(lines: Sequence[T], convert: Callable[[Sequence[T]], Iterable[str]]) -> Steps:
    """Write what a function makes of the lines, or of other items, part by part."""
    for part in slices(lines, LINES_AT_ONCE):
        yield CommandStart()
        yield write_text("".join(convert(part)))


def read_all(process: Process, names: Sequence[str]) -> Data:
    """Return the concatenated files of these names, or the input."""
    return (yield from read_files(process, names)).data


def number_of(text: str, minimum: int = 0) -> int:
    """Return a count that is an argument, with busybox' suffixes; raise `ProgramUsageError`."""
    units = {"b": 512, "k": 1024, "K": 1024, "m": 1 << 20, "M": 1 << 20, "G": 1 << 30}
    digits, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 16) or int(digits) * unit < minimum:
        raise ProgramUsageError(f"invalid number '{text}'")
    return int(digits) * unit

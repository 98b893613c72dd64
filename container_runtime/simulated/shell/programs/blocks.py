"""`dd`, `truncate` and `fallocate`, which read and write files at positions, also large ones of zeros, which take no memory."""

from collections.abc import Generator, Mapping
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.devices import DEVICES, NULL, ZERO, is_special, read_device
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    Steps,
    fill_memory,
    read_input,
)
from mockube.container_runtime.simulated.shell.redirection import open_output
from mockube.container_runtime.simulated.shell.streams import is_read_by_program
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError, NoSpace

from .endless_reads import copies_for_ever
from .files import modification_time
from .inputs import number_of, open_descriptor
from .listing import human_size

_OPERANDS: Final = frozenset(
    ["bs", "ibs", "obs", "count", "skip", "seek", "if", "of", "conv", "iflag", "oflag", "status"]
)
_FLAGS: Final[Mapping[str, frozenset[str]]] = {
    "conv": frozenset(["notrunc", "noerror", "fsync", "fdatasync", "sync", "excl", "nocreat"]),
    "iflag": frozenset(["fullblock", "skip_bytes", "count_bytes"]),
    "oflag": frozenset(["append", "seek_bytes", "direct", "dsync", "sync"]),
    "status": frozenset(["none", "noxfer", "progress"]),
}
_MORE_THAN_DISKS: Final = 1 << 60
_LARGE_BUFFER: Final = 1 << 20
_PART: Final = 1 << 18
"""The part of many zeros that is written at once."""
_MAX_SIZE: Final = 1 << 25
_TOO_MUCH: Final = "more than 16 MiB are not simulated"


class _Copy(Struct, kw_only=True, frozen=True):
    """What `dd` copies, in bytes."""

    source: str
    target: str
    block: int
    limit: int | None
    skip: int
    seek: int
    flags: frozenset[str]
    """Such as `conv=sync`."""


class _Block(NamedTuple):
    """What is copied: data, and zeros after them."""

    data: bytes
    zeros: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + self.zeros

    def part(self, start: int, end: int) -> "_Block":
        """Return the bytes from a position to another one."""
        data = self.data[start:end]
        return _Block(data, max(min(end, self.size) - max(start, len(self.data)), 0))


def dd(process: Process) -> Run:
    copy = _parse(process)
    if copy.limit is None and copy.source and copies_for_ever(process, copy.source, copy.target):
        yield from _fill_buffer(process, copy.block)
        yield Sleep(inf, cores=1.0)
    try:
        content = yield from _read(process, copy)
    except FileError as error:
        raise ProgramUsageError(f"can't open '{copy.source}': {error}") from error
    yield from _fill_buffer(process, min(copy.block, content.size))
    if "conv=sync" in copy.flags and content.size % copy.block:
        content = _Block(content.data, content.zeros + copy.block - content.size % copy.block)
    try:
        written = yield from _write(process, copy, content)
    except NoSpace as error:
        raise ProgramUsageError(f"error writing '{copy.target}': {error}") from error
    except FileError as error:
        raise ProgramUsageError(f"can't open '{copy.target}': {error}") from error
    is_full = written < content.size
    if is_full:
        yield process.error(f"error writing '{copy.target}': No space left on device")
    if "status=none" not in copy.flags:
        full, partial = divmod(content.size, copy.block)
        blocks_read = f"{full}+{int(partial > 0)}"
        blocks_written = f"{written // copy.block}+0" if is_full else blocks_read
        if is_full:
            blocks_read = f"{written // copy.block + 1}+0"
        yield Output(2, f"{blocks_read} records in\n{blocks_written} records out\n".encode())
        if "status=noxfer" not in copy.flags and not is_full:
            size = f"{content.size} bytes ({human_size(content.size)}B) copied"
            yield Output(2, f"{size}, 0.000000 seconds, 0B/s\n".encode())
    return int(is_full)


def _fill_buffer(process: Process, size: int) -> Steps:
    """Use the memory of a buffer, if it is a large one, up to the end of the program."""
    if size > _LARGE_BUFFER:
        yield from fill_memory(process, size)


def _parse(process: Process) -> _Copy:
    operands: dict[str, str] = {}
    flags: set[str] = set()
    for argument in process.arguments:
        name, equals, value = argument.partition("=")
        if name not in _OPERANDS or not equals:
            raise ProgramUsageError(f"invalid argument '{argument}'")
        operands[name] = value
        for flag in value.split(",") if name in _FLAGS else ():
            if flag not in _FLAGS[name]:
                raise ProgramUsageError(f"invalid argument '{flag}' to '{name}'")
            flags.add(f"{name}={flag}")
    block = number_of(operands.get("bs", operands.get("ibs", "512")), 1)
    output_block = number_of(operands.get("bs", operands.get("obs", "512")), 1)
    count = number_of(operands["count"]) if "count" in operands else None
    return _Copy(
        source=operands.get("if", ""),
        target=operands.get("of", ""),
        block=block,
        limit=None if count is None else count * (1 if "iflag=count_bytes" in flags else block),
        skip=number_of(operands.get("skip", "0")) * (1 if "iflag=skip_bytes" in flags else block),
        seek=number_of(operands.get("seek", "0")) * (1 if "oflag=seek_bytes" in flags else output_block),
        flags=frozenset(flags),
    )


def _read(process: Process, copy: _Copy) -> Generator[Effect, bytes | None, _Block]:
    path = process.path(copy.source) if copy.source else ""
    if path in DEVICES:
        return _read_device(process, path, copy)
    stream = open_descriptor(process, copy.source) if copy.source else None
    if copy.source and stream is None and path != NULL:
        entry = process.host.files.readable(path)
        end = entry.size if copy.limit is None else copy.skip + copy.limit
        return _Block(entry.data or b"", entry.zeros).part(copy.skip, end)
    end = limits.MAX_FILE_BYTES if copy.limit is None else copy.skip + copy.limit
    if end > limits.MAX_FILE_BYTES:
        raise ProgramUsageError(_TOO_MUCH)
    if path == NULL:
        return _Block(b"")
    read = read_input if stream is None else stream.read
    data = bytearray()
    while len(data) < end and (block := (yield from read(min(copy.block, end - len(data))))):
        data += block
    return _Block(bytes(data[copy.skip :]))


def _read_device(process: Process, path: str, copy: _Copy) -> _Block:
    """Read zeros, or random bytes, of which there are a mebibyte before zeros; without a count, more than any disk has."""
    size = _MORE_THAN_DISKS if copy.limit is None else copy.limit
    data = b"" if path == ZERO else (read_device(process.host, path) or b"")[:size]
    return _Block(data, size - len(data))


def _write(process: Process, copy: _Copy, content: _Block) -> Generator[Effect, bytes | None, int]:
    """Write what was read, as far as the disk has space for it; return how many bytes were written."""
    path, files = process.path(copy.target), process.host.files
    if not copy.target or is_special(path):
        stream = open_output(process, copy.target) if copy.target else None
        if path != NULL:
            if content.size > limits.MAX_FILE_BYTES and stream is None and is_read_by_program(process):
                yield from _write_parts(content)
                return content.size
            if content.size > limits.MAX_FILE_BYTES:
                raise ProgramUsageError(_TOO_MUCH)
            data = content.data + bytes(content.zeros)
            yield from stream.write(data) if stream is not None else _output(data)
        return content.size
    before = _Block(b"")
    if files.exists(path) and (copy.seek or not {"conv=notrunc", "oflag=append"}.isdisjoint(copy.flags)):
        entry = files.content(path)
        before = _Block(entry.data or b"", entry.zeros)
    start = before.size if "oflag=append" in copy.flags else copy.seek
    before_part = (
        before if not {"conv=notrunc", "oflag=append"}.isdisjoint(copy.flags) else before.part(0, start)
    )
    open_output(process, copy.target, appends=True)
    part = content.part(
        0,
        min(
            content.size,
            max(files.place(files.resolve(path)).files.inodes.free() + before_part.size - start, 0),
        ),
    )
    if start and not content.size and start > before_part.size:
        files.write(
            path,
            before_part.data,
            zeros=start - len(before_part.data),
            modified=modification_time(process),
            is_sparse=True,
        )
        return 0
    joined = _join(before_part.part(0, start), start, part)
    after = before_part.part(start + part.size, before_part.size) if part.size else _Block(b"")
    if after.size:
        joined = _join(joined, start + part.size, after)
    files.write(path, joined.data, zeros=joined.zeros, modified=modification_time(process))
    return part.size


def _output(data: bytes) -> Steps:
    yield Output(1, data)


def _write_parts(content: _Block) -> Steps:
    yield Output(1, content.data)
    part = bytes(_PART)
    for start in range(0, content.zeros, _PART):
        yield Output(1, part[: content.zeros - start])


def _join(before: _Block, start: int, content: _Block) -> _Block:
    """Return content after others, at a position; bytes between them are zeros."""
    if not content.data:
        return _Block(before.data, start - len(before.data) + content.zeros)
    if start > _MAX_SIZE:
        raise ProgramUsageError(_TOO_MUCH)
    return _Block(before.data.ljust(start, b"\0") + content.data, content.zeros)


def truncate(process: Process) -> Run:
    options = parse_options(process.arguments, "cs:", long={"size": "s", "no-create": "c"})
    text = options.get("s")
    sign = text[:1] if text[:1] in "+-" else ""
    number = number_of(text.removeprefix(sign))
    for name in options.arguments:
        path, files = process.path(name), process.host.files
        if not files.exists(path) and "c" in options:
            continue
        try:
            open_output(process, name, appends=True)
            # A file that becomes empty need not be read, however large it is.
            entry = files.content(path) if number or sign else files.entry(path)
            before = _Block(entry.data or b"", entry.zeros)
            size = before.size + number if sign == "+" else max(before.size - number, 0) if sign else number
            data = before.data[:size]
            files.write(
                path,
                data,
                zeros=size - len(data),
                modified=modification_time(process),
                is_sparse=size > before.size or entry.is_sparse,
            )
        except FileError as error:
            opening = "" if isinstance(error, NoSpace) else "open: "
            raise ProgramUsageError(f"{name}: {opening}{error}") from error
    return 0
    yield


def fallocate(process: Process) -> Run:
    options = parse_options(
        process.arguments, "l:o:nvx", long={"length": "l", "offset": "o", "keep-size": "n"}
    )
    if not options.arguments or "l" not in options:
        raise ProgramUsageError("usage: fallocate [-o OFS] -l LEN FILE")
    size = number_of(options.get("l"), 1) + number_of(options.get("o", "0"))
    [name] = options.arguments[:1]
    path, files = process.path(name), process.host.files
    try:
        open_output(process, name, appends=True)
    except FileError as error:
        raise ProgramUsageError(f"can't open '{name}': {error}") from error
    entry = files.content(path)
    zeros = max(size - len(entry.data or b""), entry.zeros)
    try:
        files.write(path, entry.data or b"", zeros=zeros, modified=modification_time(process))
    except FileError as error:
        raise ProgramUsageError(f"fallocate '{name}': {error}") from error
    return 0
    yield


PROGRAMS: Final[Mapping[str, Program]] = {"dd": dd, "truncate": truncate, "fallocate": fallocate}

"""`dd` and `truncate`, which read and write files at positions."""

from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.filesystem import FileError
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    read_input,
)
from mockube.container_runtime.simulated.shell.redirection import open_output

from .endless_reads import copies_for_ever
from .files import modification_time
from .inputs import Data, number_of, open_descriptor, read_path

_OPERANDS: Final = frozenset(
    ["bs", "ibs", "obs", "count", "skip", "seek", "if", "of", "conv", "iflag", "oflag", "status"]
)
_FLAGS: Final[Mapping[str, frozenset[str]]] = {
    "conv": frozenset(["notrunc", "noerror", "fsync", "fdatasync", "sync", "excl", "nocreat"]),
    "iflag": frozenset(["fullblock", "skip_bytes", "count_bytes"]),
    "oflag": frozenset(["append", "seek_bytes", "direct", "dsync", "sync"]),
    "status": frozenset(["none", "noxfer", "progress"]),
}
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


def dd(process: Process) -> Run:
    copy = _parse(process)
    if copy.limit is None and copy.source and copies_for_ever(process, copy.source, copy.target):
        yield Sleep(inf, cores=1.0)
    try:
        data = yield from _read(process, copy)
    except FileError as error:
        raise ProgramUsageError(f"can't open '{copy.source}': {error}") from error
    if "conv=sync" in copy.flags and len(data) % copy.block:
        size = -(-len(data) // copy.block) * copy.block
        if size > limits.MAX_INPUT:
            raise ProgramUsageError(_TOO_MUCH)
        data = data.ljust(size, b"\0")
    try:
        yield from _write(process, copy, data)
    except FileError as error:
        raise ProgramUsageError(f"can't open '{copy.target}': {error}") from error
    if "status=none" not in copy.flags:
        full, partial = divmod(len(data), copy.block)
        records = f"{full}+{int(partial > 0)}"
        yield Output(2, f"{records} records in\n{records} records out\n".encode())
        if "status=noxfer" not in copy.flags:
            text = f"{len(data)} bytes ({len(data)}B) copied, 0.000000 seconds, 0B/s\n"
            yield Output(2, text.encode())
    return 0


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


def _read(process: Process, copy: _Copy) -> Data:
    end = limits.MAX_INPUT if copy.limit is None else copy.skip + copy.limit
    if end > limits.MAX_INPUT:
        raise ProgramUsageError(_TOO_MUCH)
    stream = open_descriptor(process, copy.source) if copy.source else None
    if copy.source and stream is None:
        return (yield from read_path(process, copy.source))[copy.skip : end]
    read = read_input if stream is None else stream.read
    data = bytearray()
    while len(data) < end and (block := (yield from read(min(copy.block, end - len(data))))):
        data += block
    return bytes(data[copy.skip :])


def _write(process: Process, copy: _Copy, data: bytes) -> Run:
    if not copy.target:
        yield Output(1, data)
        return 0
    path, files = process.path(copy.target), process.host.files
    changes_part = copy.seek > 0 or not {"conv=notrunc", "oflag=append"}.isdisjoint(copy.flags)
    if not changes_part or not files.exists(path):
        stream = open_output(process, copy.target)
        yield from stream.write(bytes(min(copy.seek, _MAX_SIZE)) + data)
        return 0
    before = files.read(path)
    start = len(before) if "oflag=append" in copy.flags else min(copy.seek, _MAX_SIZE)
    after = before[start + len(data) :] if "conv=notrunc" in copy.flags else b""
    files.write(path, before[:start].ljust(start, b"\0") + data + after, modified=modification_time(process))
    return 0


def truncate(process: Process) -> Run:
    options = parse_options(process.arguments, "cs:", long={"size": "s", "no-create": "c"})
    size = number_of(options.get("s"))
    for name in options.arguments:
        path, files = process.path(name), process.host.files
        if not files.exists(path) and "c" in options:
            continue
        try:
            before = files.read(path) if files.exists(path) else b""
            files.write(
                path, before[:size].ljust(min(size, _MAX_SIZE), b"\0"), modified=modification_time(process)
            )
        except FileError as error:
            raise ProgramUsageError(f"{name}: {error}") from error
    return 0
    yield


PROGRAMS: Final[Mapping[str, Program]] = {"dd": dd, "truncate": truncate}

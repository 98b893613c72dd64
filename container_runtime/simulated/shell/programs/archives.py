"""Archives of simulated files: tar, as `kubectl cp` uses it, and gzip."""

import io
import tarfile
import zlib
from collections import deque
from collections.abc import Mapping
from posixpath import normpath
from typing import Final

from msgspec import Struct, field

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.patterns import pattern_of
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    count_work,
    read_input,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .files import modification_time
from .inputs import BLOCK, Data, read_files

_CONVERTED_AT_ONCE: Final = 1 << 16
"""The bytes that are compressed or decompressed at once."""
_CONVERTED_PER_COMMAND: Final = 1 << 13
_COPIED_PER_COMMAND: Final = 1 << 17


class _TarOptions(Struct, kw_only=True):
    mode: str = ""
    archive: str = "-"
    directory: str = "."
    names: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    strips: int = 0
    is_verbose: bool = False
    is_compressed: bool = False
    to_output: bool = False
    keeps_old: bool = False


_LONG: Final = {
    "create": "c", "extract": "x", "get": "x", "list": "t", "file": "f", "directory": "C", "gzip": "z", "gunzip": "z", "verbose": "v",
    "to-stdout": "O", "touch": "m", "exclude": "X", "no-same-owner": "o", "same-permissions": "p", "preserve-permissions": "p", "warning": "W",
    "keep-old-files": "k", "numeric-owner": "o", "dereference": "h", "strip-components": "N", "no-same-permissions": "o", "overwrite": "o",
    "no-overwrite-dir": "o", "files-from": "T", "auto-compress": "a", "absolute-names": "P",
}  # fmt: skip
_WITH_VALUES: Final = "fCXTN"


def _parse(process: Process) -> _TarOptions:
    options = _TarOptions()
    remaining = deque(process.arguments)
    if remaining and not remaining[0].startswith("-"):
        remaining[0] = f"-{remaining[0]}"
    while remaining:
        argument = remaining.popleft()
        if argument == "--":
            options.names += remaining
            break
        if not argument.startswith("-") or argument == "-":
            options.names.append(argument)
        elif argument.startswith("--"):
            name, separator, value = argument[2:].partition("=")
            letter = _LONG.get(name, "")
            if not letter:
                raise ProgramUsageError(f"unrecognized option: {name}")
            if letter in _WITH_VALUES and not separator:
                value = remaining.popleft() if remaining else ""
            _set(options, letter, value)
        else:
            for letter in argument[1:]:
                _set(options, letter, remaining.popleft() if letter in _WITH_VALUES and remaining else "")
    return options


def _set(options: _TarOptions, letter: str, value: str) -> None:
    match letter:
        case "c" | "x" | "t":
            options.mode = letter
        case "f":
            options.archive = value
        case "C":
            options.directory = value
        case "X":
            options.excluded.append(value)
        case "N":
            options.strips = int(value) if value.isdecimal() else 0
        case "z" | "v" | "O" | "k":
            options.is_compressed |= letter == "z"
            options.is_verbose |= letter == "v"
            options.to_output |= letter == "O"
            options.keeps_old |= letter == "k"
        case "m" | "o" | "p" | "h" | "a" | "W" | "P":
            pass
        case _:
            raise ProgramUsageError(f"unrecognized option: {letter}")


def tar(process: Process) -> Run:
    options = _parse(process)
    if not options.mode:
        raise ProgramUsageError("must specify one of -c, -x, -t")
    target_process = process.with_arguments(process.argv)
    target_process.directory = process.path(options.directory)
    files = process.host.files
    if not files.exists(target_process.directory) or not files.entry(target_process.directory).is_directory:
        raise ProgramUsageError(f"can't change directory to '{options.directory}': No such file or directory")
    if options.mode == "c":
        return (yield from _create(process, target_process, options))
    data = yield from _archive_data(process, options.archive)
    return (yield from _extract(target_process, data, options))


def _archive_data(process: Process, archive: str) -> Data:
    if archive != "-":
        try:
            return process.host.files.read(process.path(archive))
        except FileError as error:
            raise ProgramUsageError(f"can't open '{archive}': {error}") from error
    data = bytearray()
    while block := (yield from read_input(BLOCK)):
        data += block
        if len(data) > limits.MAX_ARCHIVE:
            raise ProgramUsageError("the archive is too large")
    yield from count_work(len(data), _COPIED_PER_COMMAND)
    return bytes(data)


def _create(process: Process, target_process: Process, options: _TarOptions) -> Run:
    files, code = process.host.files, 0
    buffer = io.BytesIO()
    lines: list[str] = []
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in options.names:
            path = target_process.path(name)
            if not files.has(path):
                yield process.error(f"{name}: No such file or directory")
                code = 1
                continue
            for member_path in files.walk(path):
                member_name = name.lstrip("/").rstrip("/") + member_path.removeprefix(path.rstrip("/"))
                yield CommandStart()
                if not _is_excluded(member_name, options):
                    lines.append(_add_member(archive, files, member_path, member_name))
    data = buffer.getvalue()
    if options.is_compressed or options.archive.endswith((".gz", ".tgz")):
        data = yield from _compress(data)
    if options.is_verbose:
        yield Output(2 if options.archive == "-" else 1, "".join(lines).encode())
    if options.archive != "-":
        try:
            files.write(process.path(options.archive), data, modified=modification_time(process))
        except FileError as error:
            raise ProgramUsageError(f"can't open '{options.archive}': {error}") from error
        return code
    for start in range(0, len(data), BLOCK):
        yield Output(1, data[start : start + BLOCK])
    return code


def _add_member(archive: tarfile.TarFile, files: FileSystem, path: str, name: str) -> str:
    """Add a file; return the line that names it."""
    if archive.offset > limits.MAX_ARCHIVE:
        raise ProgramUsageError("the archive is too large")
    entry = files.link_entry(path)
    content = b"" if entry.is_directory or entry.target else files.read(path)
    archive.addfile(_member(name or ".", entry), io.BytesIO(content))
    return f"{name}{'/' if entry.is_directory else ''}\n"


def _is_excluded(name: str, options: _TarOptions) -> bool:
    return any(
        pattern_of(pattern).matches(part)
        for pattern in options.excluded
        for part in (name, name.rpartition("/")[2])
    )


def _member(name: str, entry: FileEntry) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.mtime, member.size = entry.mode, int(entry.modified), 0
    member.uid, member.gid = entry.user, entry.group
    if entry.target:
        member.type, member.linkname = tarfile.SYMTYPE, entry.target
    elif entry.is_directory:
        member.type = tarfile.DIRTYPE
    else:
        member.size = entry.size
    return member


def decompress(data: bytes, maximum: int) -> Data:
    """Decompress gzip data; raise `ProgramUsageError` if they are invalid or too long."""
    output = bytearray()
    remaining = data
    try:
        while remaining:
            decoder = zlib.decompressobj(31)
            while not decoder.eof:
                yield from count_work(_CONVERTED_AT_ONCE, _CONVERTED_PER_COMMAND)
                part = decoder.decompress(remaining, _CONVERTED_AT_ONCE)
                remaining = decoder.unconsumed_tail
                output += part
                if len(output) > maximum:
                    raise ProgramUsageError("the data are too large")
                if not part and not remaining and not decoder.eof:
                    raise ProgramUsageError("unexpected end of file")
            remaining = decoder.unused_data.lstrip(b"\0")
    except zlib.error:
        raise ProgramUsageError("invalid magic") from None
    return bytes(output)


def _compress(data: bytes) -> Data:
    encoder = zlib.compressobj(1, wbits=31)
    output = bytearray()
    for part in slices(data, _CONVERTED_AT_ONCE):
        yield from count_work(len(part), _CONVERTED_PER_COMMAND)
        output += encoder.compress(part)
    return bytes(output + encoder.flush())


def _extract(target_process: Process, data: bytes, options: _TarOptions) -> Run:
    selected_names = [normpath(name) for name in options.names]
    if data.startswith(b"\x1f\x8b"):
        data = yield from decompress(data, limits.MAX_ARCHIVE)
    found_names = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for index, member in enumerate(archive):
                yield CommandStart()
                name = normpath(member.name.lstrip("/"))
                selected = [each for each in selected_names if name == each or name.startswith(f"{each}/")]
                if name.startswith("..") or (selected_names and not selected) or _is_excluded(name, options):
                    continue
                found_names.update(selected)
                if index > limits.MAX_ARCHIVE_MEMBERS:
                    raise ProgramUsageError("the archive has too many members")
                line = f"{member.name}{'/' if member.isdir() and not member.name.endswith('/') else ''}\n"
                if options.mode == "t" or options.is_verbose:
                    yield write_text(line)
                if options.mode == "x":
                    yield from _extract_member(target_process, archive, member, name, options)
    except FileError as error:
        yield target_process.error(str(error))
        return 1
    except (tarfile.TarError, EOFError, OSError, ValueError):
        yield target_process.error("invalid tar magic" if data else "short read")
        return 1
    missing = [name for name in selected_names if name not in found_names]
    for name in missing:
        yield target_process.error(f"{name}: not found in archive")
    return int(bool(missing))


def _extract_member(
    process: Process, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, options: _TarOptions
) -> Run:
    files = process.host.files
    name = "/".join(name.split("/")[options.strips :])
    if not name:
        return 0
    path = process.path(name)
    if member.isdir():
        files.make_directory(path, parents=True, modified=float(member.mtime))
        return 0
    if member.issym():
        files.make_directory(path.rpartition("/")[0] or "/", parents=True)
        if files.has(path):
            files.remove(path)
        files.link(path, member.linkname, modified=float(member.mtime))
    elif member.isfile() and member.size <= limits.MAX_FILE_BYTES:
        content = archive.extractfile(member)
        assert content is not None
        if options.to_output:
            yield Output(1, content.read())
            return 0
        files.make_directory(path.rpartition("/")[0] or "/", parents=True)
        files.write(path, content.read(), modified=float(member.mtime))
        files.change(path, mode=member.mode & 0o7777)
    process.host.changes += 1
    return 0


def compress(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "cdfkqtvnN123456789",
        long={
            "decompress": "d",
            "stdout": "c",
            "keep": "k",
            "force": "f",
            "test": "t",
            "best": "9",
            "fast": "1",
        },
    )
    expands = "d" in options or "t" in options or process.name in ("gunzip", "zcat")
    to_output = "c" in options or "t" in options or process.name == "zcat" or not options.arguments
    inputs = yield from read_files(process, options.arguments)
    for name, data in inputs:
        converted = yield from (decompress(data, limits.MAX_FILE_BYTES) if expands else _compress(data))
        if "t" in options:
            continue
        if to_output:
            for start in range(0, len(converted), BLOCK):
                yield Output(1, converted[start : start + BLOCK])
            continue
        _replace(process, name, converted, expands=expands, keeps="k" in options, forces="f" in options)
    return inputs.code


def _replace(process: Process, name: str, data: bytes, *, expands: bool, keeps: bool, forces: bool) -> None:
    if expands and not name.endswith((".gz", ".tgz")):
        raise ProgramUsageError(f"{name}: unknown suffix - ignored")
    target = (
        f"{name[:-4]}.tar" if name.endswith(".tgz") and expands else name[:-3] if expands else f"{name}.gz"
    )
    files, path = process.host.files, process.path(target)
    if files.exists(path) and not forces:
        raise ProgramUsageError(f"can't open '{target}': File exists")
    mode = files.entry(process.path(name)).mode
    files.write(path, data, modified=modification_time(process))
    files.change(path, mode=mode)
    if not keeps:
        files.remove(process.path(name))


PROGRAMS: Final[Mapping[str, Program]] = {"tar": tar, "gzip": compress, "gunzip": compress, "zcat": compress}

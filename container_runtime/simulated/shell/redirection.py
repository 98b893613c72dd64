"""Redirections: the descriptors that a command gets."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from .devices import DEVICE_BYTES, FULL, NULL, descriptor_number, read_device
from .process import DescriptorStream, Process
from .streams import (
    BadDescriptor,
    ContainerStream,
    DeviceStream,
    FileStream,
    FullDevice,
    NullStream,
    TextStream,
)
from .syntax import ShellSyntaxError
from .vfs.file_entry import FileError, NoSuchFile

_MISSING_IN_DASH: Final = {"open": "No such file", "create": "Directory nonexistent"}
_MISSING_IN_BUSYBOX: Final = {"open": "no such file", "create": "nonexistent directory"}
_OUTPUTS_OF_FIRST: Final = {"/proc/1/fd/1": 1, "/proc/1/fd/2": 2}
"""The output of the container's first process, to which scripts write the container's log."""


class RedirectionError(FileError):
    """A redirection fails; the message names its target."""


class ResolvedRedirect(Struct, frozen=True):
    """A redirection whose target is expanded: a path, a descriptor or the text of a here-document."""

    descriptor: int
    operator: str
    target: str


def redirect(
    process: Process,
    descriptors: dict[int, DescriptorStream],
    redirect: ResolvedRedirect,
    *,
    keeps_files: bool,
) -> None:
    """Change descriptors; raise `RedirectionError`. With `keeps_files`, `>` does not truncate a file that exists."""
    descriptor, operator, target = redirect.descriptor, redirect.operator, redirect.target
    if operator in ("<<", "<<<"):
        descriptors[descriptor] = TextStream(process.host, target.encode("utf-8", "surrogateescape"))
        return
    if operator in (">&", "<&"):
        if target == "-":
            descriptors.pop(descriptor, None)
            return
        if target.isdecimal():
            source = descriptors.get(int(target[:9]))
            if source is None:
                raise RedirectionError(f"{target}: Bad file descriptor")
            descriptors[descriptor] = source
            return
        if operator == "<&" or descriptor != 1:
            raise ShellSyntaxError("Syntax error: Bad fd number", f"{target}: ambiguous redirect")
        operator = "&>"
    stream = _open(process, descriptors, operator, target, keeps_files=keeps_files)
    for changed in (1, 2) if operator in ("&>", "&>>") else (descriptor,):
        descriptors[changed] = stream


def _open(
    process: Process,
    descriptors: dict[int, DescriptorStream],
    operator: str,
    target: str,
    *,
    keeps_files: bool,
) -> DescriptorStream:
    verb = "open" if operator in ("<", "<>") else "create"
    try:
        if not target:
            raise NoSuchFile
        return open_path(process, descriptors, operator, process.path(target), keeps_files=keeps_files)
    except BadDescriptor:
        raise RedirectionError(f"cannot {verb} {target}: No such device or address") from None
    except FileError as error:
        words = str(error)
        if process.is_bash:
            words = words.replace("File exists", "cannot overwrite existing file")
            raise RedirectionError(f"{target}: {words}") from error
        has_busybox = process.host.has_busybox
        if words == "No such file or directory":
            words = (_MISSING_IN_BUSYBOX if has_busybox else _MISSING_IN_DASH)[verb]
        negation = "can't" if has_busybox else "cannot"
        raise RedirectionError(f"{negation} {verb} {target}: {words}") from error


def open_path(
    process: Process,
    descriptors: Mapping[int, DescriptorStream],
    operator: str,
    path: str,
    *,
    keeps_files: bool = False,
) -> DescriptorStream:
    """Open a file or device."""
    special = _special(process, descriptors, path)
    if special is not None:
        return special
    host = process.host
    files = host.files
    path = files.resolve(path)
    if operator == "<":
        files.read(path)
        return FileStream(host, path, reads=True, writes=False)
    appends = operator in (">>", "&>>")
    exists = files.knows(path)
    if exists and keeps_files and operator == ">" and not files.entry(path).is_directory:
        raise FileError("File exists")
    if operator == "<>" and exists:
        files.read(path)
    else:
        host.changes += 1
        modified = host.now_running(is_shown=True).timestamp()
        files.write(
            path, b"", append=appends or operator == "<>", modified=modified, mode=0o666 & ~host.umask
        )
    return FileStream(host, path, reads=operator == "<>", writes=True, appends=appends)


def open_output(process: Process, name: str, *, appends: bool = False) -> DescriptorStream:
    """Open a file, device or descriptor to which a program writes; raise `FileError`."""
    return open_path(process, process.descriptors, ">>" if appends else ">", process.path(name))


def _special(
    process: Process, descriptors: Mapping[int, DescriptorStream], path: str
) -> DescriptorStream | None:
    if not path.startswith(("/dev/", "/proc/")):
        return None
    if path == NULL:
        return NullStream()
    if path == FULL:
        return FullDevice(process.host, bytes(DEVICE_BYTES))
    if (data := read_device(process.host, path)) is not None:
        return DeviceStream(process.host, data)
    if path in _OUTPUTS_OF_FIRST:
        return ContainerStream(process.host, _OUTPUTS_OF_FIRST[path])
    number = descriptor_number(path)
    if number is None:
        return None
    stream = descriptors.get(number)
    if stream is None:
        raise BadDescriptor
    return stream

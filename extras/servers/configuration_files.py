"""The files of a configuration and the logs of a server, as its program reads and opens them."""

import errno
from typing import Final

from mockube.container_runtime.simulated.shell.process import Output, Process, Steps
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

NUMBERS: Final = {
    "No such file or directory": errno.ENOENT,
    "Permission denied": errno.EACCES,
    "Not a directory": errno.ENOTDIR,
    "Is a directory": errno.EISDIR,
    "No space left on device": errno.ENOSPC,
    "Read-only file system": errno.EROFS,
}
STREAMS: Final = {
    "/dev/stdout": 1,
    "/dev/stderr": 2,
    "/proc/self/fd/1": 1,
    "/proc/self/fd/2": 2,
    "stderr": 2,
}


def worker_of(process: Process, name: str) -> int | None:
    """Return the number of the user to which a server that starts as root changes; None for the user of the container."""
    host = process.host
    if host.user or not name:
        return None
    if name.startswith("#") and name[1:].isdecimal():
        return int(name[1:10])
    return next((number for number, account in host.user_names.items() if account == name), None)


def read_file(files: FileSystem, path: str) -> str:
    """Return the text of a file; raise `OSError` if it does not exist or cannot be read."""
    try:
        text = files.read(path).decode("utf-8", "surrogateescape")
    except FileError as error:
        raise OSError(NUMBERS.get(str(error), errno.EIO), str(error)) from error
    if not text and not files.exists(path):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")
    return text


def open_log(process: Process, path: str) -> str:
    """Open a log, and create it if it is missing; return why that is not possible, "" if it is."""
    files = process.host.files
    try:
        target = files.resolve(path)
        if target in STREAMS or target.startswith("/dev/"):
            return ""
        files.write(target, b"", append=True, modified=process.host.now().timestamp())
    except FileError as error:
        return str(error)
    return ""


def write_to_log(process: Process, path: str, line: str) -> Steps:
    """Write a line to a log; one that cannot be written is left out."""
    files, data = process.host.files, f"{line}\n".encode("utf-8", "surrogateescape")
    try:
        target = files.resolve(path)
        stream = STREAMS.get(target)
        if stream is not None:
            yield Output(stream, data)
        else:
            files.write(target, data, append=True, modified=process.host.now().timestamp())
    except FileError:
        return

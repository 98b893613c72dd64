"""Files with objects: a read never waits for what is no file, such as a named pipe in a folder."""

import stat
from pathlib import Path
from typing import Final

_PIPE: Final = "a named pipe"
_TYPES: Final = (
    (stat.S_ISFIFO, _PIPE),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class NotAFile(OSError):
    """A path that is a pipe, a socket or a device."""


def read_file(path: Path, *, may_be_pipe: bool = False) -> bytes:
    """Return the content of a file; raise OSError. A pipe that the user names, as bash's `<(CMD)`, is read like one."""
    mode = path.stat().st_mode
    found = next((name for is_type, name in _TYPES if is_type(mode)), "")
    if found and not (found == _PIPE and may_be_pipe):
        raise NotAFile(0, f"this is {found}, and not a file", str(path))
    return path.read_bytes()


def problem_of(error: OSError) -> str:
    """Return why a file cannot be read, without its name."""
    return error.strerror or str(error)

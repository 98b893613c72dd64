"""What runc and containerd report of a program that cannot be started in a container. Pure."""

from hashlib import sha256
from typing import Final

from mockube.apimachinery.gotext import quote

NOT_STARTED: Final = 128
"""The exit code of a container whose program cannot be started."""
START_ERROR: Final = "StartError"
"""The reason in its status."""
_NOT_CREATED: Final = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process"
)


class StartError(Exception):
    """A program cannot be started; the message names the program and the reason."""


def not_in_path(name: str) -> str:
    return f"exec: {quote(name)}: executable file not found in $PATH"


def no_such_file(path: str) -> str:
    return f"exec: {quote(path)}: stat {path}: no such file or directory"


def is_a_directory(path: str) -> str:
    return f"exec: {quote(path)}: is a directory"


def not_executable(path: str) -> str:
    return f"exec: {quote(path)}: permission denied"


def message_of_start(problem: object) -> str:
    """Return containerd's message about a container that cannot be started."""
    return f"{_NOT_CREATED}: error during container init: {problem}"


def message_of_exec(context: str, problem: object) -> str:
    """Return containerd's message about a command that cannot be started in a running container.

    The id in it is random in containerd; here it is derived from a text, so that it is the same in each run.
    """
    exec_id = sha256(f"{context}\0{problem}".encode()).hexdigest()
    return (
        f"failed to exec in container: failed to start exec {quote(exec_id)}: OCI runtime exec failed: exec failed: "
        f"unable to start container process: {problem}"
    )

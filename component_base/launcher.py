"""A script that executes a command that cannot outlive its parent.

`launcher.py [--adopt-orphans] PARENT COMMAND...` executes the command in its place. On Linux the kernel kills it when its parent
dies, and with the flag it becomes the parent of what its children leave, as the first process of a container does. A launcher
that has more to do before that imports `execute` from the folder of this script, so it imports nothing of mockube.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ADOPT_ORPHANS = "--adopt-orphans"
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_FOUND, NOT_EXECUTED = 127, 126
"""Exit codes as of a shell."""


def run_command(command: Sequence[str], *flags: str) -> list[str]:
    """Return the command that this process starts to execute another command as a child."""
    return [sys.executable, "-I", "-S", str(Path(__file__).absolute()), *flags, str(os.getpid()), *command]


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Let the kernel send a signal to this process when its parent dies, and end now if it has died already. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(128 + number)


def adopt_orphans() -> None:
    """Become the parent of what the children of this process leave, also after `exec`. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def execute(command: list[str], parent: int) -> NoReturn:
    """Execute a command in place of this process, which the parent has started.

    Its user is the final one: a later change of the user would clear the signal of the parent's death.
    """
    die_with_parent(parent)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command needs no shell
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - it is the command's output
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTED)


if __name__ == "__main__":
    if sys.argv[1] == ADOPT_ORPHANS:
        adopt_orphans()
        del sys.argv[1]
    execute(sys.argv[2:], int(sys.argv[1]))

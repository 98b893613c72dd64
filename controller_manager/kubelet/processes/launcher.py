"""A script that executes a command that cannot outlive its parent, or kills process groups after the end of its input.

`launcher.py run PARENT USER GROUP TERMINAL COMMAND...` executes the command in its place. On Linux the kernel kills it
when its parent dies. `launcher.py watch` reads a line `+GROUP` or `-GROUP` for each process group that starts or ends.
At the end of its input, which also follows a crash of the writer, it kills the groups that have not ended.
"""

import ctypes
import fcntl
import os
import signal
import sys
import termios
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_FOUND, NOT_EXECUTED = 127, 126
"""Exit codes as of a shell."""


def run_command(
    command: Sequence[str], *, user: int | None = None, group: int | None = None, terminal: bool = False
) -> list[str]:
    """Return the command that this process starts to execute another command as a child.

    With `terminal`, its standard input becomes the controlling terminal; it is to be started in a session of its own.
    """
    identity = ["-" if number is None else str(number) for number in (user, group)]
    return [*_SELF, "run", str(os.getpid()), *identity, "1" if terminal else "0", *command]


def watch_command() -> list[str]:
    return [*_SELF, "watch"]


_SELF = (sys.executable, "-I", "-S", str(Path(__file__).absolute()))


def _execute(parent: int, user: str, group: str, terminal: str, command: list[str]) -> None:
    if terminal == "1":
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if group != "-" or user != "-":
        os.setgroups([])
    if group != "-":
        os.setgid(int(group))
    if user != "-":
        os.setuid(int(user))
    if sys.platform == "linux":
        # This follows the change of the user, which would clear the signal.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # The parent has ended already.
            sys.exit(128 + signal.SIGKILL)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command needs no shell
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - it is the command's output
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTED)


def _watch(lines: Iterable[str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in lines:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        _watch(sys.stdin)
    else:
        parent, user, group, terminal, *command = sys.argv[2:]
        _execute(int(parent), user, group, terminal, command)

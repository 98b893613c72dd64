"""Become a command that cannot outlive its parent, or watch over groups of processes. Run as a script, by its path.

`launcher.py run PARENT USER GROUP TERMINAL COMMAND...` becomes the command. On Linux the kernel kills it when its
parent dies. `launcher.py watch` reads a line `+GROUP` or `-GROUP` for each group of processes, and kills those that
are left when its input ends, which it does however the writer ends.
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
"""Exit codes, as shells have them."""


def run_command(
    command: Sequence[str], *, user: int | None = None, group: int | None = None, terminal: bool = False
) -> list[str]:
    """The command that becomes this one, to be started by this process; one with a terminal in a session of its own."""
    identity = ["-" if number is None else str(number) for number in (user, group)]
    return [*_SELF, "run", str(os.getpid()), *identity, "1" if terminal else "0", *command]


def watch_command() -> list[str]:
    return [*_SELF, "watch"]


_SELF = (sys.executable, "-I", "-S", str(Path(__file__).absolute()))


def _become(parent: int, user: str, group: str, terminal: str, command: list[str]) -> None:
    if terminal == "1":
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if group != "-" or user != "-":
        os.setgroups([])
    if group != "-":
        os.setgid(int(group))
    if user != "-":
        os.setuid(int(user))
    if sys.platform == "linux":
        # After the change of the user, which takes the request back.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            sys.exit(128 + signal.SIGKILL)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - nothing here is for a shell
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
        _become(int(parent), user, group, terminal, command)

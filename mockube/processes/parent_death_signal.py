"""Run a command that cannot outlive the process that starts it, not even if that is killed.

Run as a script, by its path, so that a small interpreter does it without importing anything of ours: it asks Linux
for the signal, and becomes the command. Elsewhere the command is not tied.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""What the command would inherit as ignored."""


def with_parent_death_signal(command: Sequence[str]) -> Sequence[str]:
    """The command that runs this one, to be started by this process."""
    return [sys.executable, "-I", "-S", str(Path(__file__).absolute()), str(os.getpid()), *command]


def _become(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before this was asked for
            sys.exit(128 + signal.SIGKILL)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - nothing here is for a shell
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - it speaks for the command
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])

"""The operating systems that mockube runs on, and their errors. It imports nothing that only some of them have."""

import sys

_WINDOWS = (
    "mockube does not run on Windows itself: it needs file locks, signals and sockets of Linux or macOS. "
    "Run it in WSL 2: https://learn.microsoft.com/windows/wsl"
)


class UnsupportedSystem(ImportError):
    """An operating system that mockube does not run on; the text says what to do instead."""


def check_system(platform: str = "") -> None:
    """Raise `UnsupportedSystem` if mockube does not run on a platform, by default this one."""
    if (platform or sys.platform) == "win32":
        raise UnsupportedSystem(_WINDOWS)


def shell_exit_code(code: int) -> int:
    """Return the exit code of a process in a shell: 128 plus the signal's number if a signal ended it."""
    return code if code >= 0 else 128 - code


def os_problem(error: OSError) -> str:
    """Return the error with its file, as other programs print it: `FILE: No such file or directory`."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)

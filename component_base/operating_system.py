"""The operating systems that mockube runs on, and their errors. It imports nothing that only some of them have."""

import sys
from typing import NamedTuple

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


class ProcessStat(NamedTuple):
    """What /proc/PID/stat has of a process."""

    parent: int
    user_ticks: int
    system_ticks: int
    started: str
    """In ticks since the start of the machine: no later process with the same id has the same."""
    virtual_bytes: int
    resident_pages: int


def read_process_stat(pid: int) -> ProcessStat:
    """Return what is known of a process; raise OSError if it has ended. Linux only."""
    return parse_process_stat(read_process_file(pid, "stat").decode(errors="replace"))


def read_process_file(pid: int, name: str) -> bytes:
    """Return the content of a file of /proc/PID; raise OSError if the process has ended. Linux only."""
    # A path and a buffer for each would take most of the time, as many processes are read.
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - as above
        return file.readall()


def parse_process_stat(line: str) -> ProcessStat:
    """Return the fields of a line. The second one is a name in parentheses, which may contain spaces and parentheses."""
    fields = line.rpartition(")")[2].split()
    return ProcessStat(
        parent=int(fields[1]),
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        started=fields[19],
        virtual_bytes=int(fields[20]),
        resident_pages=int(fields[21]),
    )


def shell_exit_code(code: int) -> int:
    """Return the exit code of a process in a shell: 128 plus the signal's number if a signal ended it."""
    return code if code >= 0 else 128 - code


def os_problem(error: OSError) -> str:
    """Return the error with its file, as other programs print it: `FILE: No such file or directory`."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)

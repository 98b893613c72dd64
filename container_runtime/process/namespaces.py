"""The namespaces that a container's process enters or has for itself, and the start of a process in them.

A namespace of processes begins with a child of the process that makes or enters it. This child is started as one of the
parent instead, so that the parent waits for it, and nothing stays between them. The launcher imports this module as a script, so it
imports nothing of mockube.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Iterable
from typing import Final

NEW_MOUNTS, NEW_HOSTNAME, _NEW_USER, NEW_PROCESSES = 0x00020000, 0x04000000, 0x10000000, 0x20000000
"""The flags of unshare(2)."""
_CLONE_PARENT: Final = 0x00008000
_CLONE_CALLS: Final = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "loongarch64": 220}
"""The number of the system call clone by machine. The functions of the C library give the child another parent, or other memory."""
_PARENT_DEATH_SIGNAL: Final = 1

LIBC: Final = ctypes.CDLL(None, use_errno=True)


def enter(files: Iterable[int]) -> None:
    """Enter the namespaces of open files, in order, and close these."""
    for file in files:
        check(LIBC.setns(file, 0), "setns")
        os.close(file)


def unshare(flags: int) -> None:
    """Make namespaces, without root's rights in a new namespace of users."""
    user, group = os.geteuid(), os.getegid()
    if not LIBC.unshare(flags):
        return
    number = ctypes.get_errno()
    if number != errno.EPERM or user == 0:
        raise OSError(number, f"unshare: {os.strerror(number)}")
    check(LIBC.unshare(flags | _NEW_USER), "unshare")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib would be imported for this
            file.write(line)


def mount(source: str, target: str, flags: int, kind: "str | None" = None) -> None:
    """Mount a file system of a `kind`, or what `flags` say without one."""
    check(
        LIBC.mount(
            source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), None
        ),
        f"mount {target}",
    )


def set_hostname(name: str) -> None:
    """Set the host name in a namespace of its own, if the machine permits one."""
    if not LIBC.unshare(NEW_HOSTNAME):
        LIBC.sethostname(name.encode(), len(name.encode()))


def start_in_namespace(status: int) -> None:
    """Go on as a child of the parent, in the namespace of processes that this process has made or entered, and end this process.

    `status` is a pipe at which the parent reads the process ID, and the end of file when the child executes its command.
    """
    call = _CLONE_CALLS.get(os.uname().machine)
    if call is None:
        raise OSError(errno.ENOSYS, f"clone: {os.strerror(errno.ENOSYS)}")
    child = LIBC.syscall(
        ctypes.c_long(call), ctypes.c_ulong(_CLONE_PARENT | signal.SIGCHLD), None, None, None, None
    )
    if child:
        check(min(child, 0), "clone")
        os.write(status, f"{child}\n".encode())
        os._exit(0)
    os.setsid()


def end_with_parent(status: int) -> None:
    """Let the kernel kill this process when its parent dies; end it if the parent has died already.

    Its parent is in another namespace and has no number in this one, but the pipe has no reader without it.
    """
    LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    try:
        os.write(status, b"\n")
    except BrokenPipeError:
        os._exit(128 + signal.SIGKILL)


def check(result: int, action: str) -> None:
    """Raise OSError for the result of a function of the C library that failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")

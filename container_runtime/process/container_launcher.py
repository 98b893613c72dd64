"""A script that executes a command of a container, or kills process groups after the end of its input.

`container_launcher.py run PARENT USER GROUPS TERMINAL NETWORK MOUNTS COMMAND...` executes the command in its place, so that it
cannot outlive its parent. With NETWORK, which is the host name of its pod and the file
descriptors of namespaces, it has these. With MOUNTS (see
`mount_namespace.Mounts`) the command sees the container's files at their own paths.
`container_launcher.py watch` reads a line `+GROUP` or `-GROUP` for each process group that starts or ends.
At the end of its input, which also follows a crash of the writer, it kills the groups that have not ended.
"""

import ctypes
import fcntl
import importlib
import os
import signal
import sys
import termios
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_CLONE_NEWUTS = 0x04000000
COMPONENT_BASE = Path(__file__).absolute().parents[3] / "component_base"


def run_command(  # noqa: PLR0913 - each is a part of what the command is given
    command: Sequence[str],
    *,
    user: int | None = None,
    groups: Sequence[int] = (),
    terminal: bool = False,
    network: Sequence[int] = (),
    hostname: str = "",
    mounts: str = "",
) -> list[str]:
    """Return the command that this process starts to execute a command of a container as a child.

    The first of the `groups` is the primary one. With `terminal`, its standard input becomes the controlling terminal; it is
    to be started in a session of its own. `network` are open files of namespaces that it enters, and has the
    `hostname` then. `mounts` is the text of the container's mounts, "" without a mount namespace.
    """
    user_text = "" if user is None else str(user)
    group_texts = ",".join(map(str, groups))
    return [
        *_SELF, "run", str(os.getpid()), user_text, group_texts, "1" if terminal else "0",
        ",".join((hostname, *map(str, network))) if network else "", mounts, *command,
    ]  # fmt: skip


def watch_command() -> list[str]:
    return [*_SELF, "watch"]


_SELF = (sys.executable, "-I", "-S", str(Path(__file__).absolute()))


def _execute(
    identity: "tuple[str, str]",
    terminal: str,
    namespaces: "tuple[str, str]",
    command: list[str],
    parent: int,
) -> None:
    network, mounts = namespaces
    launcher = _import_script("launcher", COMPONENT_BASE)
    if terminal == "1":
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if network:
        hostname, *files = network.split(",")
        _enter_network(hostname, [int(number) for number in files])
    if mounts:
        try:
            _import_script("mount_namespace", Path(__file__).absolute().parent).enter(mounts)
        except OSError as error:
            print(f"the container's mounts failed: {error}", file=sys.stderr)  # noqa: T201 - it is the command's output
            sys.exit(launcher.NOT_EXECUTED)
    _become(*identity)
    launcher.execute(command, parent)


def _import_script(name: str, folder: Path) -> Any:
    """Import a module by its folder: this script runs without mockube on its path."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def _enter_network(hostname: str, files: Sequence[int]) -> None:
    """Enter the namespaces of the pod's network, and a new one of its host name."""
    library = ctypes.CDLL(None, use_errno=True)
    for file in files:
        if library.setns(file, 0):
            print(f"the pod's network failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)  # noqa: T201 - it is the command's output
            sys.exit(_import_script("launcher", COMPONENT_BASE).NOT_EXECUTED)
        os.close(file)
    if not library.unshare(_CLONE_NEWUTS):
        library.sethostname(hostname.encode(), len(hostname.encode()))


def _become(user: str, group_texts: str) -> None:
    """Take the groups, the first of which is the primary one, and the user; "" keeps those of this process."""
    if group_texts or user:
        groups = [int(number) for number in group_texts.split(",") if number]
        os.setgroups(groups[1:])
        if groups:
            os.setgid(groups[0])
    if user:
        os.setuid(int(user))


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
        parent, user, groups, terminal, network, mounts, *command = sys.argv[2:]
        _execute((user, groups), terminal, (network, mounts), command, int(parent))

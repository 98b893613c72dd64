"""A script that executes a command of a container, or kills process groups after the end of its input.

`container_launcher.py run PARENT LAUNCH COMMAND...` executes the command in its place, or as a child of the parent, so that it
cannot outlive its parent. LAUNCH is the text of a `Launch`: its user, its namespaces, and its mounts.
`container_launcher.py watch` reads a line `+GROUP` or `-GROUP` for each process group that starts or ends.
At the end of its input, which also follows a crash of the writer, it kills the groups that have not ended.
`container_launcher.py hold` is process 1 of the containers of a pod that share a namespace of processes; it does nothing.
"""

import fcntl
import importlib
import os
import signal
import sys
import termios
from ast import literal_eval
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

_FOLDER = Path(__file__).absolute().parent
COMPONENT_BASE = _FOLDER.parents[2] / "component_base"
_OPEN_FILES = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


class Launch(NamedTuple):
    """How a command is started, in built-in types."""

    user: "int | None" = None
    groups: Sequence[int] = ()
    """The first one is the primary one."""
    terminal: bool = False
    """Its standard input becomes the controlling terminal."""
    namespaces: Sequence[int] = ()
    """The open files of namespaces that it enters, in order."""
    hostname: str = ""
    """The host name that it has for itself; "" for that of its namespaces."""
    mounts: "Sequence[Any]" = ()
    """Its root and its mounts, as `Mounts.fields` returns them; none without a mount namespace of its own."""
    root: str = ""
    """Its root in the mount namespace that it enters; "" for that of the namespace."""
    status: int = -1
    """An open pipe, if it is started in another namespace of processes than its parent's (see `start_in_namespace`)."""
    has_new_processes: bool = False
    """It is process 1 of a namespace of processes."""
    shows_processes: bool = False
    """Its /proc is that of its namespace of processes."""
    capabilities: int = -1
    """The bits of the capabilities that it may have, if this process is root; all for -1."""
    gains_nothing: bool = False
    """No program that it executes gives it more rights."""
    memory_group: str = ""
    """The file by which it enters the cgroup that limits its memory; "" for none."""
    network: "tuple[str, int, int] | None" = None
    """The host and the port of all that there is in its own network, and an open socket (see `own_network`); None for this machine's network."""


_AS_THIS_PROCESS = Launch()


def run_command(command: Sequence[str], launch: Launch = _AS_THIS_PROCESS) -> list[str]:
    """Return the command that this process starts to execute a command of a container as a child, in a session of its own."""
    return [*_SELF, "run", str(os.getpid()), repr(tuple(launch)), *command]


def watch_command() -> list[str]:
    return [*_SELF, "watch"]


def hold_command() -> list[str]:
    return [*_SELF, "hold"]


_SELF = (sys.executable, "-I", "-S", str(_FOLDER / Path(__file__).name))


def _execute(launch: Launch, command: list[str], parent: int) -> None:
    launcher = _import_script("launcher", COMPONENT_BASE)
    channels = [] if launch.network is None else [launch.network[2]]
    _close_others([*launch.namespaces, *channels, *([launch.status] if launch.status >= 0 else ())])
    # Modules are imported before the root of the container hides them.
    namespaces, privileges = _import_script("namespaces", _FOLDER), _import_script("privileges", _FOLDER)
    is_linux = sys.platform == "linux"
    has_limits = is_linux and os.geteuid() == 0 and launch.capabilities >= 0
    step = "namespaces"
    try:
        # The file has another path, or none, in the namespaces; what the launcher needs does not count for the container.
        memory_group = os.open(launch.memory_group, os.O_WRONLY | os.O_CLOEXEC) if launch.memory_group else -1
        _enter_namespaces(launch)
        if launch.terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        step = "memory limit"
        if memory_group >= 0:
            os.write(memory_group, b"0")
        step = "privileges"
        if has_limits:
            privileges.limit_bounding(namespaces.LIBC, namespaces.check, launch.capabilities)
        _become(launch.user, launch.groups)
        if has_limits:
            privileges.limit_own(namespaces.LIBC, namespaces.check, launch.capabilities)
        if is_linux and launch.gains_nothing:
            privileges.gain_nothing(namespaces.LIBC, namespaces.check)
    except OSError as error:
        print(f"the container's {step} failed: {error}", file=sys.stderr)  # noqa: T201 - it is the command's output
        sys.exit(launcher.NOT_EXECUTED)
    if launch.status >= 0:
        _import_script("namespaces", _FOLDER).end_with_parent(launch.status)
        parent = os.getppid()
    launcher.execute(command, parent)


def _close_others(needed: "Iterable[int]") -> None:
    """Close the files that a command does not need: event loops leave copies of its streams open in their children."""
    needed_files = {0, 1, 2, *needed}
    for name in os.listdir(_OPEN_FILES):  # noqa: PTH208 - the limit of open files may be a billion
        if int(name) not in needed_files:
            with suppress(OSError):  # the folder's own
                os.close(int(name))


def _enter_namespaces(launch: Launch) -> None:
    """Enter the namespaces that exist, and make those that the command has for itself."""
    namespaces = _import_script("namespaces", _FOLDER)
    mount_namespace = _import_script("mount_namespace", _FOLDER)
    folder = os.getcwd()  # noqa: PTH109 - an argument of functions that know no pathlib
    namespaces.enter(launch.namespaces)
    if launch.network is not None:
        _import_script("own_network", _FOLDER).enter(namespaces.unshare, *launch.network)
    if launch.hostname:
        namespaces.set_hostname(launch.hostname)
    if launch.status >= 0:
        os.set_inheritable(launch.status, False)  # noqa: FBT003 - of the library
        if launch.has_new_processes:
            namespaces.unshare(namespaces.NEW_PROCESSES)
        namespaces.start_in_namespace(launch.status)
    if launch.mounts or launch.shows_processes:
        namespaces.unshare(namespaces.NEW_MOUNTS)
    if launch.mounts:
        mount_namespace.enter(namespaces.mount, *launch.mounts, has_processes=launch.shows_processes)
    elif launch.shows_processes:
        mount_namespace.show_processes(namespaces.mount)
    elif launch.root:
        mount_namespace.take_root(launch.root, folder)
    elif launch.namespaces:
        os.chdir(folder)  # who enters a namespace of mounts is in its root


def _import_script(name: str, folder: Path) -> Any:
    """Import a module by its folder: this script runs without mockube on its path."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def _become(user: "int | None", groups: Sequence[int]) -> None:
    """Take the groups and the user; those of this process remain without one."""
    if groups or user is not None:
        os.setgroups(groups[1:])
        if groups:
            os.setgid(groups[0])
    if user is not None:
        os.setuid(user)


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


def _hold() -> NoReturn:
    for number in (signal.SIGINT, signal.SIGCHLD):  # the kernel removes children that end
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        _watch(sys.stdin)
    elif sys.argv[1] == "hold":
        _hold()
    else:
        _execute(Launch(*literal_eval(sys.argv[3])), sys.argv[4:], int(sys.argv[2]))

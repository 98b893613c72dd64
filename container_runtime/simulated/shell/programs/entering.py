"""chroot and nsenter: programs that lead from a container to the machine of its node."""

from collections.abc import Mapping, Sequence
from typing import Final

from mockube.container_runtime.simulated.shell.invocation import run_program
from mockube.container_runtime.simulated.shell.invoking import CommandNotFound
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    CHROOT,
    NSENTER,
    Host,
    Process,
    Program,
    ProgramUsageError,
    Run,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

_NAMESPACES: Final = {
    "target": "t", "mount": "m", "uts": "u", "ipc": "i", "net": "n", "pid": "p", "cgroup": "C", "user": "U", "all": "a", "root": "r", "wd": "w",
    "time": "T",
}  # fmt: skip
_FAILED: Final = 125
_NOT_FOUND: Final = 127
_SHELL: Final = ("/bin/bash", "-i")


def chroot(process: Process) -> Run:
    """Run a program in another root: that of the node where a hostPath volume has it, or the present one."""
    options = parse_options(
        process.arguments, "", long={"userspec": "U", "skip-chdir": "S", "groups": "G"}, stops=True
    )
    if not options.arguments:
        raise ProgramUsageError("missing operand", _FAILED)
    directory, *argv = options.arguments
    host, files = process.host, process.host.files
    path = process.path(directory)
    try:
        path = files.resolve(path)
        files.children(path)
    except FileError as error:
        words = f"cannot change root directory to '{directory}': {error}"
        raise ProgramUsageError(
            words if host.has_gnu_programs else f"can't change root directory to '{directory}': {error}",
            _FAILED,
        ) from error
    if host.user:
        raise ProgramUsageError(
            f"cannot change root directory to '{directory}': Operation not permitted", _FAILED
        )
    mount = files.mounts.by_path.get(path)
    is_node = mount is not None and not mount.inner and mount.files.inodes.source != files.inodes.source
    if is_node and mount is not None and mount.read_only:
        raise ProgramUsageError(
            f"a root that is mounted read-only, as {directory}, is not simulated", _FAILED
        )
    inner = host.enter_node(CHROOT, mount.files) if mount is not None and is_node else None
    if is_node and inner is None:
        raise ProgramUsageError(
            f"cannot change root directory to '{directory}': Operation not permitted", _FAILED
        )
    if inner is None and path != "/":
        name = argv[0] if argv else "/bin/sh"
        raise ProgramUsageError(f"failed to run command '{name}': No such file or directory", _NOT_FOUND)
    return (yield from _run(process, inner or host, argv or _SHELL))


def nsenter(process: Process) -> Run:
    """Run a program in the namespaces of another process: of the first one of the node, or of the container itself."""
    options = parse_options(process.arguments, "t:muinpCUar:w:T", long=_NAMESPACES, stops=True)
    target = options.get("t")
    if not target:
        raise ProgramUsageError("no target PID specified")
    if not target.isdecimal():
        raise ProgramUsageError(f"failed to parse pid: '{target}'")
    inner = process.host if process.host.is_node else process.host.enter_node(NSENTER, None)
    if inner is None or int(target[:9]) != 1 or not options.has_any("ma"):
        if int(target[:9]) != 1 and inner is None:
            raise ProgramUsageError(f"cannot open /proc/{target}/ns/mnt: No such file or directory")
        if inner is None:
            raise ProgramUsageError("reassociate to namespace 'ns/mnt' failed: Operation not permitted")
        raise ProgramUsageError("only the namespaces of the process 1 of a node, with -m, are simulated")
    return (yield from _run(process, inner, options.arguments or _SHELL))


def _run(process: Process, host: Host, argv: Sequence[str]) -> Run:
    environment: Mapping[str, str] = {**process.environment, **host.environment}
    child = process.child(argv, environment)
    child.host, child.directory = host, "/"
    host.has_terminal, host.memory = process.host.has_terminal, process.host.memory
    try:
        return (yield from run_program(child))
    except CommandNotFound as error:
        yield process.error(f"failed to run command '{argv[0]}': No such file or directory")
        return error.code


PROGRAMS: Final[Mapping[str, Program]] = {"chroot": chroot, "nsenter": nsenter}

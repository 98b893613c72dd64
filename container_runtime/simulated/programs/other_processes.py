"""The processes of a container beside those of a command in it: its first process, and those of a shared namespace. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NoReturn, TypeAlias

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.capabilities import capabilities_of
from mockube.container_runtime.config.environment import References, environment_of, security_context
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import Image, ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import NoLogs, run_of
from mockube.container_runtime.simulated.files.process_files import OF_PROCESS_ITSELF, process_files
from mockube.container_runtime.simulated.files.users import identity_of
from mockube.container_runtime.simulated.shell.only_program import only_program
from mockube.container_runtime.simulated.shell.outside import OutsideAnswer
from mockube.container_runtime.simulated.shell.process import FIRST_PID, OtherProcess, RunningProcess
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import PROC
from mockube.container_runtime.simulated.shell.vfs.process_views import ProcessView

from . import program

_ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_USER_OF_PAUSE: Final = 65535
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_SHELL_WITH_SCRIPT: Final = 3
"""The words of `sh -c SCRIPT`."""
_STARTING: Final = frozenset({"sh", "bash", "ash", "dash", "env", "timeout", "nohup", "exec", "xargs"})
"""The simulated programs that start others."""


def first_argv(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command line of a container's first process; of an image whose program nobody knows, the name of the image."""
    text = script_of(meta.annotations(pod)).command(container["name"])
    if text is not None:
        return ("sh", "-c", text)
    image = images.behavior_of(container)
    if image is not None and program.serves(images, container) and (argv := _server_argv(image, container)):
        return argv
    argv = program.argv_of(images, container)
    if argv:
        return _executed(tuple(expand_references(argv, environment)))
    return ((container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0],)


def _executed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line of a shell, or of the one program of its script, which it executes in its own process."""
    shell = argv[0].rpartition("/")[2]
    if len(argv) != _SHELL_WITH_SCRIPT or argv[1] != "-c" or shell not in _SHELLS:
        return argv
    return only_program(argv[2], is_bash=shell == "bash") or argv


def _server_argv(image: Image, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command line of an image's server; empty if nobody knows it. A server that shows a title of its own shows no options."""
    arguments = (*(container.get("command") or ()), *(container.get("args") or ()))
    if arguments and arguments[0].rpartition("/")[2] in image.servers:
        return arguments
    name = next(iter(image.servers), image.process.partition(" ")[0])
    has_title = ": " in image.process
    if arguments and name and not has_title:
        return (name, *arguments)
    return (image.process,) if image.process else ()


def process_entries(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> dict[str, FileEntry]:
    """Return the files in /proc about a container's first process, and that of its namespace."""
    pid = program.pid_of(pod, container) or FIRST_PID
    files = _files_of_process(images, pod, container, references)
    entries = {f"{PROC}/{pid}/{name}": entry for name, entry in files.items()}
    entries |= {f"{PROC}/self/{name}": files[name] for name in OF_PROCESS_ITSELF}
    if pod["spec"].get("shareProcessNamespace"):
        for name, text in (("cmdline", "/pause\0"), ("comm", "pause\n"), ("cgroup", "0::/\n")):
            entries[f"{PROC}/{FIRST_PID}/{name}"] = _entry(name, text.encode(), _USER_OF_PAUSE)
    return entries


def process_view(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    root: FileSystem,
    tracer: ReadOnlyTree,
) -> ProcessView:
    """Return what /proc shows to a container, the `tracer`, of the first process of another one, whose files are `root`."""
    files = {
        f"/{name}": entry for name, entry in _files_of_process(images, pod, container, references).items()
    }
    may_trace = _may_trace(images, pod, tracer, container)
    return ProcessView(files, identity_of(images, pod, container).user, root if may_trace else None)


def _may_trace(images: ImageTable, pod: ReadOnlyTree, tracer: ReadOnlyTree, traced: ReadOnlyTree) -> bool:
    """Return whether programs of a container may use the files of another one's, by the kernel's rule for ptrace."""
    own = (
        capabilities_of(security_context(pod, tracer))
        if not identity_of(images, pod, tracer).user
        else frozenset()
    )
    if "SYS_PTRACE" in own:
        return True
    user = identity_of(images, pod, traced).user
    others = capabilities_of(security_context(pod, traced)) if not user else frozenset()
    return user == identity_of(images, pod, tracer).user and own >= others


def _files_of_process(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> dict[str, FileEntry]:
    environment = environment_of(pod, container, references)
    argv = first_argv(images, pod, container, environment)
    user = identity_of(images, pod, container).user
    pid = program.pid_of(pod, container) or FIRST_PID
    return {
        name: _entry(name, data, user)
        for name, data in process_files(images, pod, container, pid, argv, environment)
    }


def _entry(name: str, data: bytes, user: int) -> FileEntry:
    return FileEntry(data=data, mode=0o400 if name == "environ" else 0o444, user=user, read_only=True)


SendSignal: TypeAlias = Callable[[str, int], None]
"""Sends a signal to the first process of a container, by the container's name."""
ListProcesses: TypeAlias = Callable[[str], Sequence[RunningProcess] | None]
"""Returns the processes of a container's command by the container's name; None if nobody knows them."""


def other_processes(  # noqa: PLR0913, PLR0917 - each argument is a dependency
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    environment: Mapping[str, str],
    now: datetime,
    send_signal: SendSignal,
    list_processes: ListProcesses = lambda _: None,
    *,
    is_main: bool = False,
) -> tuple[OtherProcess, ...]:
    """Return what runs in a container besides a client's command, or besides its own one (`is_main`)."""
    is_shared = bool(pod["spec"].get("shareProcessNamespace"))
    running = [
        (other, at)
        for other in program.containers_in_namespace(pod, container)
        if not (is_main and other["name"] == container["name"])
        and (at := _started(pod, other) or (None if is_shared or other["name"] != container["name"] else now))
    ]
    first_start = min((started for _, started in running), default=now)
    processes = [
        _first_process(
            images, pod, other, program.pid_of(pod, other) or FIRST_PID, environment, at, send_signal
        )
        for other, at in running
    ]
    names = [other["name"] for other, _ in running]
    if is_shared:
        processes, names = [_pause(first_start), *processes], ["", *names]
    containers = {other["name"]: other for other in every_container(pod["spec"])}
    found = list[OtherProcess]()
    for first, name in zip(processes, names, strict=True):
        other = containers.get(name)
        image = None if other is None else images.behavior_of(other)
        is_server = other is not None and program.serves(images, other)
        found += with_listed(first, list_processes(name), image, is_server=is_server)
    return tuple(sorted(found, key=lambda process: process.pid))


def with_listed(
    first: OtherProcess,
    listed: Sequence[RunningProcess] | None,
    image: Image | None = None,
    *,
    is_server: bool = False,
) -> Iterator[OtherProcess]:
    """Yield the first process of a container, the processes of its command if they are known, and those that its server starts.

    `is_server`: the container runs the server of its image.
    """
    if not listed:
        yield first
        if image is not None and is_server:
            yield from _children_of(first, image)
        return
    own = listed[0]
    argv = _with_title(tuple(own.name), image)
    yield replace(first, argv=argv, may_have_others=False)
    for other in listed[1:]:
        pid = first.pid + other.pid - own.pid
        yield replace(
            first, pid=pid, argv=tuple(other.name), send_signal=other.send_signal, may_have_others=False
        )
    if image is not None and len(listed) == 1 and _is_server(argv, image):
        yield from _children_of(first, image)


_FIRST_CHILD: Final = 29
"""The id of the first process that a server starts which is itself the first one: its entrypoint has started others before."""


def _children_of(first: OtherProcess, image: Image) -> Iterator[OtherProcess]:
    """Yield the processes that a server starts, which signals to them do not end: it would start them again."""
    pid = _FIRST_CHILD if first.pid == FIRST_PID else first.pid + 1
    for number, (title, user) in enumerate(image.children.items(), pid):
        yield OtherProcess(number, (title,), user if not first.user else first.user, first.started)


def _is_server(argv: Sequence[str], image: Image) -> bool:
    return argv[0].partition(":")[0].rpartition("/")[2] in image.servers


def _with_title(argv: tuple[str, ...], image: Image | None) -> tuple[str, ...]:
    """Return a command line as ps shows it: with the title of a server that has one, such as `nginx: master process`."""
    if image is None or not image.servers or not _is_server(argv, image) or ": " not in image.process:
        return argv
    title = image.process.rpartition(image.servers[0])[0]
    return (f"{title}{' '.join(argv)}",)


def processes_at_start(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, environment: Mapping[str, str]
) -> tuple[OtherProcess, ...]:
    """Return what runs in a container at any time beside a command that the kubelet executes, without the times of starts."""
    if not pod["spec"].get("shareProcessNamespace"):
        pid = program.pid_of(pod, container) or FIRST_PID
        first = _first_process(images, pod, container, pid, environment, _ANY_TIME)
        return (replace(first, send_signal=_send_to_unknown),)
    others = (
        _first_process(images, pod, other, program.pid_of(pod, other), environment, _ANY_TIME)
        for other in pod["spec"]["containers"]
    )
    return (_pause(_ANY_TIME), *(replace(other, send_signal=_send_to_unknown) for other in others))


def _send_to_unknown(_: int) -> NoReturn:
    raise OutsideAnswer


def _pause(started: datetime) -> OtherProcess:
    return OtherProcess(FIRST_PID, ("/pause",), _USER_OF_PAUSE, started)


def _first_process(  # noqa: PLR0913, PLR0917 - each argument is a dependency
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    pid: int,
    environment: Mapping[str, str],
    started: datetime,
    send_signal: SendSignal | None = None,
) -> OtherProcess:
    argv = first_argv(images, pod, container, environment)
    name = argv[0].rpartition("/")[2]
    process = OtherProcess(
        pid=pid,
        argv=argv,
        user=identity_of(images, pod, container).user,
        started=started,
        may_have_others=not program.serves(images, container) and (name not in PROGRAMS or name in _STARTING),
    )
    if send_signal is None:
        return process
    return replace(process, send_signal=partial(send_signal, container["name"]))


def _started(pod: ReadOnlyTree, container: ReadOnlyTree) -> datetime | None:
    """Return when a container started that still runs."""
    try:
        run = run_of(pod, container["name"])
    except NoLogs:
        return None
    return run.started if run.finished is None else None

"""The program of a container: how long its command runs, and its exit code.

Pure. The command is interpreted. The result is None for a command that is not simulated.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from math import inf
from shlex import quote
from typing import Any, Final, NamedTuple, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import (
    KILLED,
    MAX_LOG_MESSAGE,
    MAX_MESSAGE,
    NOT_FOUND,
    SERVICE,
    TERM,
    RunBehavior,
    StopReaction,
    end_at_start,
    falls_back_to_log,
    has_default_command,
    has_open_input,
    message_path,
    name_unknown,
)
from mockube.container_runtime.config.variables import expand_references, reference_names
from mockube.container_runtime.disk_usage import DISK_BYTES
from mockube.container_runtime.images.programs import ImagePrograms, programs_of_image
from mockube.container_runtime.images.table import (
    ENTRYPOINT,
    Image,
    ImageTable,
    WrittenPath,
    is_daemon,
    runs_server,
    without_entrypoint,
)
from mockube.container_runtime.load import RunLoad
from mockube.container_runtime.simulated.files.image_places import file_places
from mockube.container_runtime.simulated.files.mounts import MESSAGE_FILE, written_folders
from mockube.container_runtime.simulated.files.users import group_names, user_names
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.invoking import start_problem
from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.node_disk import NodeDisk
from mockube.container_runtime.simulated.shell.outside import (
    HOST_NAME,
    OutsideAnswer,
    ProcessesAsked,
    ValueAsked,
    outside_files,
)
from mockube.container_runtime.simulated.shell.process import (
    FIRST_PID,
    Effect,
    Host,
    Input,
    OtherProcess,
    Output,
    Process,
    ProgramCall,
    RepeatedIteration,
    Run,
    Sleep,
    TooLarge,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.installed_servers import PROGRAMS as SERVERS
from mockube.container_runtime.simulated.shell.programs.installed_servers import ServerKind, kind_of
from mockube.container_runtime.simulated.shell.scheduling import ProcessScheduler
from mockube.container_runtime.simulated.shell.signals import SIGNAL_CODE
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.image_folders import ImagePlaces
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount, WriteProtection
from mockube.container_runtime.start_errors import NOT_STARTED, StartError, message_of_start

from .advance_budget import AdvanceBudget
from .cpu_meter import CpuMeter
from .image_servers import programs_with_servers, server_names
from .object_values import ObjectVariables
from .server_start import FailedStart, failed_by_capabilities, failed_start, written_paths

MAX_RUNS: Final = 10
"""The number of restarts that are interpreted; later runs are like the last of them."""
_RUNS_KEPT: Final = 2 * MAX_RUNS
"""The number of runs whose files are kept for the next ones."""
_PIDS_OF_CONTAINER: Final = 7
"""The distance of the first processes of containers that share their processes."""
_PID_BESIDE: Final = 7
"""The id of a command that is not the first of its namespace, where it may have any."""
_NAME_SERVER: Final = "coredns"
MUCH: Final = 16 << 20
"""The bytes from which on what a command writes counts on the disk of its node, so that it runs in real time."""
_GO_PROGRAMS: Final = frozenset({"agnhost", "kubectl", "kube-proxy", "kube-webhook-certgen"})
"""Programs that end at SIGTERM also as the first process of a container, as Go's run-time does."""
_GO_EXIT: Final = 2
_CODES: Final = {"http-echo": 0, "socat": SIGNAL_CODE + TERM}
"""The exit codes of other servers that handle SIGTERM."""
_MAX_REACTION: Final = 3600.0
"""The seconds after a signal for which a command is interpreted."""
_PAUSE_NAME: Final = re.compile(r"pause(?:-[a-z0-9]+)?(?:[:@].*)?")
ANY_YEAR: Final = 2030


MountPaths = tuple[tuple[str, str], ...]
"""The names of volumes with their mount paths."""


UnknownPlaces = tuple[tuple[str, str], ...]
"""The mount paths of volumes into which programs that are not simulated may have written, with their images."""


Folders = tuple[tuple[str, FileEntry], ...]
"""The paths of folders with their owners and modes."""


class CommandContext(Struct, frozen=True, kw_only=True):
    """The context that determines, besides the specification, what a container's command does."""

    script: str | None = None
    """A shell script that replaces the command."""
    environment: Callable[[], Mapping[str, str]] = dict
    identity: ContainerUser = ContainerUser()
    volumes: tuple[str, ...] = ()
    """The mount paths of volumes that are empty at first and persist over restarts of the container."""
    folders: Folders = ()
    """The folders at these paths as the volumes have them at first."""
    protection: WriteProtection = ()
    shared_mounts: MountPaths = ()
    """The mounts of volumes that are shared with other containers of the pod."""
    earlier: "tuple[Invocation, ...]" = ()
    """The commands that ran earlier and may have left files in the shared volumes."""
    unknown_places: UnknownPlaces = ()
    outside: tuple[str, ...] = ()
    """The mount paths of volumes whose files others may write."""
    object_variables: ObjectVariables = ObjectVariables()
    much: int = MUCH
    """The bytes from which on what a command writes counts on the disk of its node."""
    hostname: str = "localhost"
    year: int = ANY_YEAR
    """The year in which the pod was created."""
    fails_unknown: bool = False
    """Whether programs that are not simulated fail."""
    pid: int = FIRST_PID
    """The id of the command's first process; 0 for one in the namespace of its node."""


_DEFAULT_CONTEXT: Final = CommandContext()
ON_CLOCK: Final = RunBehavior(seconds=None, stop_code=KILLED, is_certain=False)
"""A run of which nobody knows anything before it runs."""


def program_of(
    images: ImageTable,
    container: Mapping[str, Any],
    context: CommandContext = _DEFAULT_CONTEXT,
    restarts: int = 0,
    started: datetime | None = None,
) -> RunBehavior | None:
    """Return the container's program, or None for an unknown command; one that reads the time is for a run that `started` then."""
    if context.script is None and (failed := _failed_server(images, container, context)) is not None:
        return failed
    default = default_run(images, container) if context.script is None else None
    if default is not None:
        return default
    invocation = invocation_of(images, container, context)
    if invocation is None:
        return SERVICE if is_pause_image(container.get("image") or "") else None
    program = _interpret(invocation, min(restarts, MAX_RUNS), None).program
    if isinstance(program, RunBehavior) and program.reads_time and started is not None:
        program = _interpret(invocation, min(restarts, MAX_RUNS), started).program
    if isinstance(program, UnknownCommand):
        return None
    return program


def default_run(images: ImageTable, container: Mapping[str, Any]) -> RunBehavior | None:
    """Return what the default command of a known image does, if that is data; None for any other, or one that waits for input."""
    image = images.behavior_of(container) if has_default_command(container) else None
    if image is None or image.exit_code is None or (image.reads_input and has_open_input(container)):
        return None
    return end_at_start(container, image.exit_code, image.logs)


def _failed_server(
    images: ImageTable, container: Mapping[str, Any], context: CommandContext
) -> RunBehavior | None:
    """Return the run of a known image's server that cannot write where it has to; None for any other."""
    identity = context.identity
    may_fail = identity.user or identity.capabilities is not None or context.protection
    needs = written_paths(images, container) if may_fail else ()
    by_capabilities = failed_by_capabilities(images, container, identity)
    if not needs:
        return _end_of_start(container, by_capabilities)
    image_folders = tuple(written_folders(images, container))
    failed = _failed_start(
        Invocation(
            argv=(),
            identity=identity,
            volumes=context.volumes,
            folders=(*image_folders, *context.folders),
            protection=context.protection,
            shared_mounts=context.shared_mounts,
            earlier=context.earlier,
        ),
        needs,
    )
    return _end_of_start(container, failed or by_capabilities)


def _end_of_start(container: Mapping[str, Any], failed: FailedStart | None) -> RunBehavior | None:
    return None if failed is None else end_at_start(container, failed.exit_code, failed.lines)


@lru_cache(maxsize=4096)
def _failed_start(invocation: "Invocation", needs: tuple[WrittenPath, ...]) -> FailedStart | None:
    try:
        return failed_start(initial_files(invocation, AdvanceBudget()), needs)
    except OutsideAnswer:
        return None


def unknown_program_of(
    images: ImageTable, container: Mapping[str, Any], context: CommandContext = _DEFAULT_CONTEXT
) -> str:
    """Return the program in a container's command that is not simulated; "" if there is none."""
    invocation = invocation_of(images, container, context)
    program = None if invocation is None else _interpret(invocation, 0, None).program
    if not isinstance(program, UnknownCommand):
        return ""
    return name_unknown(container, program.name, has_script=context.script is not None)


def invocation_of(
    images: ImageTable, container: Mapping[str, Any], context: CommandContext
) -> "Invocation | None":
    """Return the container's command with its context; None if the command is the image's own."""
    argv = ("sh", "-c", context.script) if context.script is not None else command_of(images, container)
    if not argv:
        return None
    of_objects = context.object_variables
    variables = {name: value for name, value in context.environment().items() if name not in of_objects.names}
    has_references = any("$" in word for word in argv)
    references = frozenset[str]().union(*map(reference_names, argv)) if has_references else ()
    environment = shared_variables(container, variables)
    invocation = Invocation(
        argv=tuple(expand_references(argv, variables)) if has_references else argv,
        object_variables=of_objects._replace(left_out=frozenset(variables.keys() - environment.keys())),
        is_outside=any(name not in variables and of_objects.may_have(name) for name in references),
        much=context.much,
        environment=tuple(environment.items()),
        identity=context.identity,
        message_path=message_path(container),
        falls_back_to_log=falls_back_to_log(container),
        volumes=context.volumes,
        folders=context.folders,
        protection=context.protection,
        shared_mounts=context.shared_mounts,
        earlier=context.earlier,
        unknown_places=context.unknown_places,
        outside=context.outside,
        directory=container.get("workingDir") or "/",
        year=context.year,
        fails_unknown=context.fails_unknown,
        pid=context.pid,
        places=file_places(images, container),
        installed=None if context.script is not None else installed_programs(images, container),
        has_open_input=has_open_input(container),
        has_terminal=bool(container.get("tty")),
        image=container.get("image") or "",
        known=None if context.script is not None else images.behavior_of(container),
        has_server=context.script is None and configured_kind(images, container) is not None,
        user_names=tuple(user_names(images, container).items()),
        group_names=tuple(group_names(images, container).items()),
    )
    return _with_asked_values(invocation, variables, context.hostname)


def _with_asked_values(invocation: "Invocation", variables: Mapping[str, str], hostname: str) -> "Invocation":
    """Return a command with those values of its pod for which it asks; it shares its result with others that have the same ones."""
    while missing_value := _interpret(invocation, 0, None).missing_value:
        if missing_value == HOST_NAME:
            invocation = replace(invocation, hostname=hostname or "localhost")
            continue
        of_objects = invocation.object_variables
        invocation = replace(
            invocation,
            environment=(*invocation.environment, (missing_value, variables[missing_value])),
            object_variables=of_objects._replace(left_out=of_objects.left_out - {missing_value}),
        )
    return invocation


def shared_variables(container: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that equal commands share: those that the container names, with their values."""
    literals = {entry["name"] for entry in container.get("env") or () if "valueFrom" not in entry}
    return {
        name: value
        for name, value in {**_path_variable(container), **variables}.items()
        if name in literals or name == "PATH"
    }


def start_problem_of(images: ImageTable, container: Mapping[str, Any]) -> str:
    """Return why the container's command cannot be started: its image lacks the program; "" if it can, as far as that is known."""
    argv = command_of(images, container)
    if not argv or (installed := installed_programs(images, container)) is None:
        return ""
    path = _path_variable(container).get("PATH") or ""
    directory = container.get("workingDir") or "/"
    return _start_problem(installed, argv[0], path, directory, file_places(images, container))


def _path_variable(container: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the variable PATH of a container, which says where programs are looked for, if its specification sets it."""
    return {
        entry["name"]: entry.get("value") or ""
        for entry in container.get("env") or ()
        if entry["name"] == "PATH"
    }


@lru_cache(maxsize=4096)
def _start_problem(
    installed: ImagePrograms, name: str, path: str, directory: str, places: ImagePlaces
) -> str:
    host = Host(
        hostname="",
        files=FileSystem({}, is_partial=True, places=places),
        now=lambda: datetime(ANY_YEAR, 1, 1, tzinfo=UTC),
        programs=PROGRAMS,
        installed=installed,
    )
    process = Process(
        host=host,
        argv=[name],
        environment={"PATH": path} if path else {},
        directory=directory,
        processes=ProcessScheduler(),
    )
    return start_problem(process)


def installed_programs(images: ImageTable, container: Mapping[str, Any]) -> ImagePrograms | None:
    """Return the programs that the container's command may run; None if nobody knows them.

    That of `args` alone depends on the entrypoint of the image, unless the image has none, as those of shells.
    """
    image = images.behavior_of(container)
    if image is None or not (container.get("command") or image.reads_input):
        return None
    if script_of_program(images, container, argv_of(images, container)) is not None:
        return None
    return programs_of_image(images, container["image"])


def command_of(images: ImageTable, container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a container's command, or else the command of a known image; empty for the server of one.

    A program that the table of images describes by a script is this script.
    """
    argv = argv_of(images, container)
    if not argv:
        return ()
    script = script_of_program(images, container, argv) or _script_of_entrypoint(images, container, argv)
    return argv if script is None else ("sh", "-c", script, *argv)


def _script_of_entrypoint(
    images: ImageTable, container: Mapping[str, Any], argv: Sequence[str]
) -> str | None:
    """Return what the entrypoint of a known server does with a program that goes to the background, or that the image lacks."""
    image = images.behavior_of(container)
    if image is None or not argv or image.is_guess or not image.servers or image.entrypoint:
        return None
    if is_daemon(image, argv):
        return "exit 0"
    has_entrypoint = not container.get("command") and "/" not in argv[0] and not argv[0].startswith("-")
    installed = programs_of_image(images, container["image"]) if has_entrypoint else None
    if installed is None or installed.has(argv[0]) is not False or ENTRYPOINT not in installed.names:
        return None
    return f"echo {quote(f'{ENTRYPOINT}: exec: {argv[0]}: not found')} >&2; exit {NOT_FOUND}"


def script_of_program(images: ImageTable, container: Mapping[str, Any], argv: Sequence[str]) -> str | None:
    """Return the script by which the table of images describes the program of a command; None if it has none."""
    image = images.behavior_of(container)
    if image is None or not image.scripts or not argv:
        return None
    return image.scripts.get(argv[0].rpartition("/")[2])


def serves(images: ImageTable, container: Mapping[str, Any]) -> bool:
    """Return whether a container runs the server of its image, which is no program that is interpreted."""
    image = images.behavior_of(container)
    command, arguments = without_entrypoint(container, image)
    program = next(iter(command or arguments), "").rpartition("/")[2]
    if program in SERVERS:
        if image is None or kind_of(image) is not None:
            return False
    elif program in PROGRAMS:
        return False
    return runs_server(images, container)


def configured_kind(images: ImageTable, container: Mapping[str, Any]) -> ServerKind | None:
    """Return the server of a container's image whose configuration is simulated; None for any other."""
    image = images.behavior_of(container)
    return None if image is None or image.is_guess else kind_of(image)


def starts_configured_server(images: ImageTable, container: Mapping[str, Any]) -> bool:
    """Return whether a container runs the server of its image as a program that reads its configuration."""
    image = images.behavior_of(container)
    return image is not None and kind_of(image) is not None and runs_server(images, container)


def argv_of(images: ImageTable, container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line that a container's runtime starts; empty for the server of a known image."""
    command, arguments = container.get("command") or (), container.get("args") or ()
    image = images.behavior_of(container)
    if not command and not arguments and (image is None or not (image.entrypoint or image.arguments)):
        return ()  # as for most containers
    if serves(images, container):
        return ()
    inner = without_entrypoint(container, image)
    if image is not None and inner[1] and inner != (command, arguments):
        return tuple(inner[1])  # The script replaces itself by another program.
    if image is None or command:
        return (*command, *arguments)
    if image.wraps_programs and arguments and arguments[0].rpartition("/")[2] in PROGRAMS:
        return tuple(arguments)
    return (*image.entrypoint, *(arguments or image.arguments))


def is_pause_image(image: str) -> bool:
    return _PAUSE_NAME.fullmatch(image.rpartition("/")[2]) is not None


class Invocation(Struct, frozen=True, kw_only=True):
    """A command and everything that determines what it does: the key of the cached results."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    identity: ContainerUser
    message_path: str = ""
    falls_back_to_log: bool = False
    volumes: tuple[str, ...] = ()
    shared_mounts: MountPaths = ()
    earlier: "tuple[Invocation, ...]" = ()
    unknown_places: UnknownPlaces = ()
    outside: tuple[str, ...] = ()
    """The mount paths of volumes whose files others may write."""
    directory: str = "/"
    object_variables: ObjectVariables = ObjectVariables()
    is_outside: bool = False
    """Whether the command line itself has values of API objects."""
    much: int = MUCH
    """The bytes from which on what it writes counts on the disk of its node, so that it runs on the clock."""
    folders: Folders = ()
    protection: WriteProtection = ()
    hostname: str = ""
    """The host name; "" until the command asks for it."""
    year: int = ANY_YEAR
    fails_unknown: bool = False
    pid: int = FIRST_PID
    places: ImagePlaces | None = None
    installed: ImagePrograms | None = None
    """The programs of the image; None if nobody knows them."""
    has_open_input: bool = False
    """Whether a read of the standard input waits."""
    has_terminal: bool = False
    image: str = ""
    known: Image | None = None
    """What is known of the image."""
    has_server: bool = False
    """Whether the image has a server with a configuration, whose start lies outside."""
    user_names: tuple[tuple[int, str], ...] = ()
    group_names: tuple[tuple[int, str], ...] = ()
    """The accounts of the image."""

    def file_system(
        self, entries: Mapping[str, FileEntry], unknown_volumes: Container[str] = ()
    ) -> FileSystem:
        """Return the files of the command with the contents of the volumes that it can write, and the file for its message.

        Nobody knows the contents of the `unknown_volumes`.
        """
        message = {self.message_path: MESSAGE_FILE} if self.message_path else {}
        outside = {*self.outside, *(path for name, path in self.shared_mounts if name in unknown_volumes)}
        prefixes = tuple(f"{path.rstrip('/')}/" for path in outside)
        files = FileSystem(
            {
                path: entry
                for path, entry in {**dict(self.folders), **message, **entries}.items()
                if not f"{path}/".startswith(prefixes)
            },
            is_partial=True,
            volumes=self.volumes,
            places=self.places,
            mounts=dict.fromkeys(outside, OUTSIDE),
            user=self.identity,
            protection=self.protection,
        )
        note_unknown_places(files, self.unknown_places)
        return files


def note_unknown_places(files: FileSystem, places: UnknownPlaces) -> None:
    """Have a read of a file that a program which is not simulated may have written raise `UnknownProgram`."""
    if places:
        files.unknown.refuse(partial(_unknown_file, places))


def _unknown_file(places: UnknownPlaces, path: str) -> UnknownProgram | None:
    image = next((image for place, image in places if f"{path}/".startswith(f"{place}/")), None)
    return (
        None if image is None else UnknownProgram(f"what reads {path}, which the image {image} was to write,")
    )


OUTSIDE: Final = Mount(files=outside_files())


class UnknownCommand(Struct, frozen=True):
    """A command that is not simulated."""

    name: str
    """The program that is not simulated."""


class Interpretation(NamedTuple):
    """What a command does, as far as it is computed in advance."""

    program: "RunBehavior | UnknownCommand"
    calls: Sequence[ProgramCall]
    """The calls of programs that may listen."""
    missing_value: str
    """The value of its pod for which it asks and which it lacks; "" without one."""


@lru_cache(maxsize=4096)
def _interpret(invocation: Invocation, restarts: int, started: datetime | None) -> Interpretation:
    """Return what a command does in the run after `restarts` restarts; each run reads the volumes' files of the previous runs.

    Without the time at which it started, the program is that of a run at the beginning of its year: as nearly all do not
    read the time, one result serves for many pods.
    """
    run = _run_after(invocation, restarts, started)
    return Interpretation(run.program, run.calls, run.missing_value)


def calls_of(
    images: ImageTable, container: Mapping[str, Any], context: CommandContext
) -> Sequence[ProgramCall]:
    """Return which programs that may listen a container's command calls, as far as it is computed in advance."""
    invocation = invocation_of(images, container, context)
    return () if invocation is None else _interpret(invocation, 0, None).calls


class _Trace(Struct):
    """What is noted of a run besides what it does."""

    calls: list[ProgramCall] = field(default_factory=list)
    missing_value: str = ""


class _ComputedRun(NamedTuple):
    program: "RunBehavior | UnknownCommand"
    calls: Sequence[ProgramCall]
    missing_value: str
    files: Mapping[str, FileEntry]
    """What it has left in its volumes."""


@lru_cache(maxsize=_RUNS_KEPT)
def _run_after(invocation: Invocation, restarts: int, started: datetime | None) -> _ComputedRun:
    budget = AdvanceBudget()
    if restarts:
        before = _run_after(invocation, restarts - 1, started)
        if isinstance(before.program, UnknownCommand) or not before.program.leaves_files:
            return before
        files = invocation.file_system(before.files)
    else:
        files = initial_files(invocation, budget, started)
    trace = _Trace()
    program = _run_once(invocation, files, budget, started, trace)
    return _ComputedRun(program, trace.calls, trace.missing_value, _volume_files(invocation, files))


def initial_files(
    invocation: Invocation, budget: AdvanceBudget, started: datetime | None = None
) -> FileSystem:
    """Return the files at the start of a command: those that the earlier commands have written into its volumes."""
    content: dict[str, dict[str, FileEntry]] = {}
    unknown: set[str] = set()
    for earlier_command in invocation.earlier:
        mounts = earlier_command.shared_mounts
        files = earlier_command.file_system(_mounted_entries(content, mounts), unknown)
        behavior = _run_once(earlier_command, files, budget, started, _Trace())
        if behavior is ON_CLOCK:
            unknown |= {volume for volume, _ in mounts}
            continue
        for volume, mount_path in mounts:
            content[volume] = {
                path[len(mount_path) :]: entry for path, entry in files.inodes.below(mount_path)
            }
    return invocation.file_system(_mounted_entries(content, invocation.shared_mounts), unknown)


def _mounted_entries(
    content: Mapping[str, Mapping[str, FileEntry]], shared_mounts: MountPaths
) -> dict[str, FileEntry]:
    return {
        mount_path + path: entry
        for volume, mount_path in shared_mounts
        for path, entry in content.get(volume, {}).items()
    }


def _volume_files(invocation: Invocation, files: FileSystem) -> dict[str, FileEntry]:
    return {path: entry for volume in invocation.volumes for path, entry in files.inodes.below(volume)}


def start_invocation(
    invocation: Invocation,
    files: FileSystem,
    started: datetime | None = None,
    other_processes: tuple[OtherProcess, ...] | None = None,
    ask_variable: Callable[[str], None] | None = None,
) -> tuple[Host, Run]:
    """Return a command that has not done anything yet, and the host in which it runs, beside other processes, if they are known."""
    now = started or datetime(invocation.year, 1, 1, tzinfo=UTC)
    values = dict(invocation.environment)
    user, group, others, _ = invocation.identity
    host = Host(
        hostname=invocation.hostname,
        ask_hostname=(lambda: None) if invocation.hostname else _ask_for_hostname,
        pid=invocation.pid if other_processes is not None else invocation.pid or _PID_BESIDE,
        find_others=_ask_for_processes if other_processes is None else lambda: other_processes,
        find_size=_raise_outside,
        ask_variable=ask_variable or invocation.object_variables.ask,
        enter_node=_raise_outside,
        find_server=_raise_outside if invocation.has_server else lambda: None,
        user=user,
        group=group,
        other_groups=others,
        files=files,
        now=lambda: now,
        is_strict=not invocation.fails_unknown,
        programs=programs_with_servers(invocation.known, invocation.image),
        installed=invocation.installed,
        has_open_input=invocation.has_open_input,
        has_terminal=invocation.has_terminal,
        image=invocation.image,
        user_names=dict(invocation.user_names),
        group_names=dict(invocation.group_names),
    )
    command = list(invocation.argv)
    if command[0] == "exit":
        command = ["sh", "-c", " ".join(command)]
    return host, run_command(host, command, values, invocation.directory)


def _raise_outside(*_: object) -> NoReturn:
    raise OutsideAnswer


def _ask_for_hostname() -> NoReturn:
    raise ValueAsked(HOST_NAME)


def _ask_for_processes() -> NoReturn:
    raise ProcessesAsked


def _run_once(
    invocation: Invocation,
    files: FileSystem,
    budget: AdvanceBudget,
    started: datetime | None,
    trace: _Trace,
) -> RunBehavior | UnknownCommand:
    try:
        return _computed(invocation, files, budget, started, trace)
    except ValueAsked as error:
        trace.missing_value = error.name
        return ON_CLOCK
    except (OutsideAnswer, TooLarge):  # What is too large ends its container if that has less memory.
        return ON_CLOCK


def _computed(
    invocation: Invocation,
    files: FileSystem,
    budget: AdvanceBudget,
    started: datetime | None,
    trace: _Trace,
) -> RunBehavior | UnknownCommand:
    if invocation.is_outside:
        raise OutsideAnswer
    host, execution = start_invocation(invocation, files, started)
    host.calls = trace.calls
    log, meter, disk = bytearray(), CpuMeter(), NodeDisk(DISK_BYTES)
    files.inodes.quota.disk = disk
    try:
        code = _run_to_end(execution, host, log, meter, budget)
    except StartError as error:
        return RunBehavior(seconds=0, exit_code=NOT_STARTED, start_error=message_of_start(error))
    except TooLarge:
        raise
    except UnknownProgram as error:
        if invocation.fails_unknown:
            return RunBehavior(seconds=host.elapsed, exit_code=NOT_FOUND)
        host.note_end_at(str(error))
        return UnknownCommand(str(error))
    except (ShellSyntaxError, RecursionError) as error:
        host.note_end_at("its script")
        return UnknownCommand(f"its script ({error})")
    except OutOfMemory:
        seconds = host.memory.steps[-1].seconds
        return RunBehavior(
            seconds=None,
            stop_code=KILLED,
            load=RunLoad(memory=(*host.memory.steps,), cores=1.0, steady_from=seconds),
        )
    load = meter.load(host)
    running = host.listed_processes()  # none after its end
    argv = running[0].name if running else invocation.argv
    reaction, may_handle = default_reaction(
        argv, is_first=invocation.pid == FIRST_PID, image=invocation.known
    )
    handles_signals = may_handle and host.catches_signals
    if handles_signals:
        reaction_at(invocation, host.elapsed, started)  # It may ask for something else then.
    if code is None:
        return RunBehavior(
            seconds=None,
            stop_code=reaction.exit_code,
            stop_seconds=reaction.seconds,
            handles_signals=handles_signals,
            load=load,
            changes_files=host.changes > 0,
            is_certain=not files.unknown.guesses
            and disk.reserved < invocation.much
            and (not log or invocation.much == MUCH),  # A log grows, too.
        )
    log_tail = log.decode("utf-8", "replace") if invocation.falls_back_to_log and code else ""
    seconds = host.elapsed
    return RunBehavior(
        seconds=seconds,
        exit_code=code,
        stop_code=reaction.exit_code if seconds else 0,
        stop_seconds=reaction.seconds if seconds else 0.0,
        handles_signals=handles_signals and seconds > 0,
        message=termination_message(files, invocation.message_path) or log_tail,
        leaves_files=_leaves_files(invocation, files),
        reads_time=host.time_reads > 0,
        load=load,
        changes_files=host.changes > 0,
        is_certain=not files.unknown.guesses and disk.reserved < invocation.much,
    )


def default_reaction(
    argv: Sequence[str], *, is_first: bool, image: Image | None = None
) -> tuple[StopReaction, bool]:
    """Return what the program of a first process does after SIGTERM, unless a trap decides that; also return whether one may.

    The process may not be the first of its namespace.
    """
    program = argv[0].rpartition("/")[2]
    if program in _GO_PROGRAMS:
        is_pause = program == "agnhost" and "pause" in argv[1:2]
        return StopReaction(0.0, 0 if is_pause else _GO_EXIT), False
    if program in server_names(image) and image is not None and image.ignores_term and is_first:
        return StopReaction(inf, KILLED), False
    if program in _CODES:
        return StopReaction(0.0, _CODES[program]), False
    kind = None if image is None else kind_of(image)
    if program == _NAME_SERVER or (kind is not None and kind.has(argv)) or program in server_names(image):
        return StopReaction(0.0, 0), False
    return StopReaction(0.0, SIGNAL_CODE + TERM) if not is_first else StopReaction(inf, KILLED), True


def reaction_at(invocation: Invocation, seconds: float, started: datetime | None = None) -> StopReaction:
    """Return what a command with a trap does if it gets SIGTERM after so many seconds of its run; raise `OutsideAnswer` if nobody knows."""
    budget = AdvanceBudget()
    host, execution = start_invocation(invocation, initial_files(invocation, budget, started), started)
    try:
        return _run_with_signal(execution, host, seconds, budget)
    except OutOfMemory:
        return StopReaction(0.0, KILLED)
    except (StartError, UnknownProgram, ShellSyntaxError, RecursionError):
        return StopReaction()
    finally:
        execution.close()


def _run_with_signal(execution: Run, host: Host, at: float, budget: AdvanceBudget) -> StopReaction:
    """Run a command that gets SIGTERM while it sleeps at a time."""
    reply: bytes | None = None
    signalled_at: float | None = None
    iterations_after = 0
    while True:
        try:
            effect = budget.advance(execution, reply)
        except StopIteration as stop:
            return StopReaction(
                host.elapsed - (host.elapsed if signalled_at is None else signalled_at), stop.value
            )
        reply = None
        if isinstance(effect, RepeatedIteration) and signalled_at is None and not effect.changes:
            iterations = int((at - host.elapsed) / effect.seconds) - 1
            reply = str(iterations).encode() if iterations > 0 else None
        elif isinstance(effect, RepeatedIteration) and signalled_at is not None:
            iterations_after += 1
            if iterations_after > 1:  # The trap is executed at the beginning of the second.
                break
        elif isinstance(effect, Input) and host.has_open_input:
            break
        elif isinstance(effect, Sleep) and signalled_at is None and host.elapsed + effect.seconds > at:
            slept = min(max(at - host.elapsed, 0.0), effect.seconds)
            host.elapsed += slept
            signalled_at = host.elapsed
            host.send_signal(TERM)
            reply = str(slept).encode()
        elif isinstance(effect, Sleep):
            host.elapsed += effect.seconds
            if host.elapsed - (signalled_at or 0.0) > _MAX_REACTION and signalled_at is not None:
                break
    return StopReaction(inf, KILLED)


def _leaves_files(invocation: Invocation, files: FileSystem) -> bool:
    """Return whether a volume has something else than a folder that nobody has changed."""
    folders = dict(invocation.folders)
    return any(
        folders.get(path) != entry
        for volume in invocation.volumes
        for path, entry in files.inodes.below(volume)
    )


def termination_message(files: FileSystem, path: str) -> str:
    """Return the message that a run has written into a file; "" without one."""
    try:
        return files.read(path)[-MAX_MESSAGE:].decode("utf-8", "replace") if files.exists(path) else ""
    except FileError:
        return ""


def _run_to_end(
    execution: Run, host: Host, log: bytearray, meter: CpuMeter, budget: AdvanceBudget
) -> int | None:
    """Run a command and return its exit code; None if it is endless."""
    while True:
        try:
            effect = budget.advance(execution)
        except StopIteration as stop:
            code: int = stop.value
            return code
        if isinstance(effect, Output):
            log += effect.data
            del log[:-MAX_LOG_MESSAGE]
        meter.count(effect)
        if is_endless(effect, host):
            if host.catches_signals and isinstance(effect, RepeatedIteration) and effect.changes:
                raise OutsideAnswer  # What it does after a signal depends on what it has changed until then.
            return None
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0


def is_endless(effect: Effect, host: Host) -> bool:
    """Return whether a command goes on after an effect neither by itself nor in another way than before."""
    if isinstance(effect, Input):
        return host.has_open_input
    return isinstance(effect, RepeatedIteration) or (isinstance(effect, Sleep) and effect.seconds == inf)


def is_first_process(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether the command of a container is the first process of its namespace."""
    spec = pod["spec"]
    return not (
        spec.get("hostPID") or spec.get("shareProcessNamespace") or container.get("targetContainerName")
    )


def pid_of(pod: ReadOnlyTree, container: ReadOnlyTree) -> int:
    """Return the id of the first process of a container; 0 for one in the namespace of its node, where it may have any."""
    if is_first_process(pod, container):
        return FIRST_PID
    if pod["spec"].get("hostPID"):
        return 0
    names = [other["name"] for other in every_container(pod["spec"])]
    return (names.index(container["name"]) + 1) * _PIDS_OF_CONTAINER


def containers_in_namespace(pod: ReadOnlyTree, container: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return the containers whose processes one sees: all in a shared namespace; else itself with the ephemeral ones that target it."""
    spec = pod["spec"]
    if spec.get("shareProcessNamespace"):
        return [*every_container(spec)]
    first = container.get("targetContainerName") or container["name"]
    return [
        other for other in every_container(spec) if first in (other["name"], other.get("targetContainerName"))
    ]

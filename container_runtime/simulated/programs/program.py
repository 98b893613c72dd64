"""The program of a container: how long its command runs, and its exit code.

Pure. The command is interpreted. The result is None for a command that is not simulated.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import (
    DEFAULT_MESSAGE_PATH,
    KILLED,
    MAX_LOG_MESSAGE,
    MAX_MESSAGE,
    RUNS_FOREVER,
    RunBehavior,
    has_default_command,
    has_open_input,
    name_unknown,
)
from mockube.container_runtime.config.environment import security_context
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.load import NO_LOAD, Load
from mockube.container_runtime.simulated.files.image_places import file_places
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileError, FileSystem, ImagePlaces
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.invoking import NOT_FOUND
from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    ContainerUser,
    Effect,
    Host,
    Input,
    Output,
    RepeatedIteration,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError

from .cpu_meter import CpuMeter

MAX_RUNS: Final = 10
"""The number of restarts that are interpreted; later runs are like the last of them."""
MAX_COMMANDS: Final = 5_000
"""The number of commands after which a script counts as endless."""

MAX_EFFECTS: Final = 50_000


_PAUSE_IMAGE: Final = re.compile(r"(?:.*/)?pause(?:-[a-z0-9]+)?(?:[:@].*)?")
ANY_YEAR: Final = 2030
_HOSTNAME: Final = re.compile(r"hostname|uname|python", re.IGNORECASE)
"""Matches a command that depends on the host name: Python's random numbers do."""


MountPaths = tuple[tuple[str, str], ...]
"""The names of volumes with their mount paths."""


class CommandContext(Struct, frozen=True, kw_only=True):
    """The context that determines, besides the specification, what a container's command does."""

    script: str | None = None
    """A shell script that replaces the command."""
    environment: Callable[[], Mapping[str, str]] = dict
    identity: ContainerUser = ContainerUser()
    volumes: tuple[str, ...] = ()
    """The mount paths of volumes that are empty at first and persist over restarts of the container."""
    shared_mounts: MountPaths = ()
    """The mounts of volumes that are shared with other containers of the pod."""
    earlier: "tuple[Invocation, ...]" = ()
    """The commands that ran earlier and may have left files in the shared volumes."""
    hostname: str = "localhost"
    year: int = ANY_YEAR
    """The year in which the pod was created."""
    fails_unknown: bool = False
    """Whether programs that are not simulated fail."""


_DEFAULT_CONTEXT: Final = CommandContext()


def program_of(
    container: Mapping[str, Any],
    context: CommandContext = _DEFAULT_CONTEXT,
    restarts: int = 0,
    started: datetime | None = None,
) -> RunBehavior | None:
    """Return the container's program, or None for an unknown command; one that reads the time is for a run that `started` then."""
    default = default_run(container) if context.script is None else None
    if default is not None:
        return default
    invocation = invocation_of(container, context)
    if invocation is None:
        return RUNS_FOREVER if _PAUSE_IMAGE.fullmatch(container.get("image") or "") else None
    program = _interpret(invocation, min(restarts, MAX_RUNS), None)
    if isinstance(program, RunBehavior) and program.reads_time and started is not None:
        program = _interpret(invocation, min(restarts, MAX_RUNS), started)
    if isinstance(program, UnknownCommand):
        return None
    if program.message and _uses_referenced_variable(container, "\0".join(invocation.argv)):
        return replace(program, message="")
    return program


def default_run(container: Mapping[str, Any]) -> RunBehavior | None:
    """Return what the default command of a known image does, if that is data; None for any other, or one that waits for input."""
    image = behavior_of(container) if has_default_command(container) else None
    if image is None or image.exit_code is None or (image.reads_input and has_open_input(container)):
        return None
    falls_back_to_log = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    lines = image.logs if image.exit_code and falls_back_to_log else ()
    return RunBehavior(seconds=0, exit_code=image.exit_code, message="".join(f"{line}\n" for line in lines))


def unknown_program_of(container: Mapping[str, Any], context: CommandContext = _DEFAULT_CONTEXT) -> str:
    """Return the program in a container's command that is not simulated; "" if there is none."""
    invocation = invocation_of(container, context)
    program = None if invocation is None else _interpret(invocation, 0, None)
    if not isinstance(program, UnknownCommand):
        return ""
    return name_unknown(container, program.name, has_script=context.script is not None)


def invocation_of(container: Mapping[str, Any], context: CommandContext) -> "Invocation | None":
    """Return the container's command with its context; None if the command is the image's own."""
    argv = ("sh", "-c", context.script) if context.script is not None else command_of(container)
    if not argv:
        return None
    text = "\0".join(argv)
    variables = context.environment() if "$" in text or "python" in text else {}
    return Invocation(
        argv=tuple(expand_references(argv, variables)) if "$" in text else argv,
        environment=tuple((name, value) for name, value in variables.items() if name in text),
        identity=context.identity,
        message_path=container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH,
        falls_back_to_log=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        volumes=context.volumes,
        shared_mounts=context.shared_mounts,
        earlier=context.earlier,
        hostname=context.hostname if _HOSTNAME.search(text) else "localhost",
        year=context.year,
        fails_unknown=context.fails_unknown,
        places=file_places(container),
        has_open_input=has_open_input(container),
        has_terminal=bool(container.get("tty")),
        image=(container.get("image") or "") if "python" in text else "",
    )


def _uses_referenced_variable(container: Mapping[str, Any], text: str) -> bool:
    """Return whether the command may use a variable from a ConfigMap or a Secret."""
    return "$" in text and bool(
        container.get("envFrom")
        or any(
            {"configMapKeyRef", "secretKeyRef"} & (entry.get("valueFrom") or {}).keys()
            for entry in container.get("env") or ()
        )
    )


def command_of(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a container's command, or else the command of a known image."""
    command, arguments = container.get("command") or (), container.get("args") or ()
    image = behavior_of(container) if not command else None
    if image is None:
        return (*command, *arguments)
    if image.wraps_programs and arguments and arguments[0].rpartition("/")[2] in PROGRAMS:
        return tuple(arguments)
    return (*image.entrypoint, *(arguments or image.arguments))


def is_server_image(container: Mapping[str, Any]) -> bool:
    """Return whether the container's image is a known one whose programs may listen on any port."""
    image = behavior_of(container)
    return image is not None and image.listens


class Invocation(Struct, frozen=True, kw_only=True):
    """A command and everything that determines what it does: the key of the cached results."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    identity: ContainerUser
    message_path: str
    falls_back_to_log: bool
    volumes: tuple[str, ...]
    shared_mounts: MountPaths
    earlier: "tuple[Invocation, ...]"
    hostname: str = "localhost"
    year: int = ANY_YEAR
    fails_unknown: bool = False
    places: ImagePlaces | None = None
    has_open_input: bool = False
    """Whether a read of the standard input waits."""
    has_terminal: bool = False
    image: str = ""
    """The reference of the image, if the command depends on it."""

    def file_system(self, entries: Mapping[str, FileEntry]) -> FileSystem:
        """Return the files of the command with the contents of the volumes that it can write."""
        return FileSystem(entries, is_partial=True, volumes=self.volumes, places=self.places)


class UnknownCommand(Struct, frozen=True):
    """A command that is not simulated."""

    name: str
    """The program that is not simulated."""


@lru_cache(maxsize=4096)
def _interpret(
    invocation: Invocation, restarts: int, started: datetime | None
) -> "RunBehavior | UnknownCommand":
    """Return the program of the run after `restarts` restarts; each run reads the volumes' files of the previous runs.

    Without the time at which it started, the program is that of a run at the beginning of its year: as nearly all do not
    read the time, one result serves for many pods.
    """
    files = initial_files(invocation, started)
    program = _run_once(invocation, files, started)
    for _ in range(restarts):
        if isinstance(program, UnknownCommand) or not program.leaves_files:
            break
        files = invocation.file_system(_volume_files(invocation, files))
        program = _run_once(invocation, files, started)
    return program


def initial_files(invocation: Invocation, started: datetime | None = None) -> FileSystem:
    """Return the files at the start of a command: those that the earlier commands have written into its volumes."""
    content: dict[str, dict[str, FileEntry]] = {}
    for earlier_command in invocation.earlier:
        files = earlier_command.file_system(_mounted_entries(content, earlier_command.shared_mounts))
        _run_once(earlier_command, files, started)
        for volume, mount_path in earlier_command.shared_mounts:
            paths = files.walk(mount_path) if files.exists(mount_path) else ()
            content[volume] = {path[len(mount_path) :]: files.entry(path) for path in paths}
    return invocation.file_system(_mounted_entries(content, invocation.shared_mounts))


def _mounted_entries(
    content: Mapping[str, Mapping[str, FileEntry]], shared_mounts: MountPaths
) -> dict[str, FileEntry]:
    return {
        mount_path + path: entry
        for volume, mount_path in shared_mounts
        for path, entry in content.get(volume, {}).items()
    }


def _volume_files(invocation: Invocation, files: FileSystem) -> dict[str, FileEntry]:
    volumes = (volume for volume in invocation.volumes if files.exists(volume))
    return {path: files.entry(path) for volume in volumes for path in files.walk(volume)}


def start_invocation(
    invocation: Invocation, files: FileSystem, started: datetime | None = None
) -> tuple[Host, Run]:
    """Return a command that has not done anything yet, and the host in which it runs."""
    now = started or datetime(invocation.year, 1, 1, tzinfo=UTC)
    values = dict(invocation.environment)
    user, group, others = invocation.identity
    host = Host(
        name=invocation.hostname,
        user=user,
        group=group,
        other_groups=others,
        files=files,
        now=lambda: now,
        is_strict=not invocation.fails_unknown,
        programs=PROGRAMS,
        has_open_input=invocation.has_open_input,
        has_terminal=invocation.has_terminal,
        image=invocation.image,
    )
    command = list(invocation.argv)
    if command[0] == "exit":
        command = ["sh", "-c", " ".join(command)]
    return host, run_command(host, command, values)


def _run_once(
    invocation: Invocation, files: FileSystem, started: datetime | None
) -> RunBehavior | UnknownCommand:
    host, execution = start_invocation(invocation, files, started)
    log, meter = bytearray(), CpuMeter()
    try:
        code = _run_to_end(execution, host, log, meter)
    except UnknownProgram as error:
        if invocation.fails_unknown:
            return RunBehavior(seconds=host.elapsed, exit_code=NOT_FOUND)
        return UnknownCommand(str(error))
    except (ShellSyntaxError, RecursionError) as error:
        return UnknownCommand(f"its script ({error})")
    except OutOfMemory:
        seconds = host.memory.steps[-1].seconds
        return RunBehavior(
            seconds=None,
            stop_code=KILLED,
            load=Load(memory=(*host.memory.steps,), cores=1.0, steady_from=seconds),
        )
    load = meter.load(host)
    if code is None:
        return RUNS_FOREVER if load == NO_LOAD else replace(RUNS_FOREVER, load=load)
    log_tail = log.decode("utf-8", "replace") if invocation.falls_back_to_log and code else ""
    seconds = host.elapsed
    return RunBehavior(
        seconds=seconds,
        exit_code=code,
        stop_code=KILLED if seconds else 0,
        message=termination_message(files, invocation.message_path) or log_tail,
        leaves_files=any(files.exists(volume) for volume in invocation.volumes),
        reads_time=host.time_reads > 0,
        load=load,
    )


def termination_message(files: FileSystem, path: str) -> str:
    """Return the message that a run has written into a file; "" without one."""
    try:
        return files.read(path)[:MAX_MESSAGE].decode("utf-8", "replace") if files.exists(path) else ""
    except FileError:
        return ""


def _run_to_end(execution: Run, host: Host, log: bytearray, meter: CpuMeter) -> int | None:
    """Run a command and return its exit code; None if it is endless, or exceeds the limits."""
    commands = 0
    for _ in range(MAX_EFFECTS):
        try:
            effect = next(execution)
        except StopIteration as stop:
            code: int = stop.value
            return code
        commands += isinstance(effect, CommandStart)
        if isinstance(effect, Output):
            log += effect.data
            del log[:-MAX_LOG_MESSAGE]
        meter.count(effect)
        if commands > MAX_COMMANDS or is_endless(effect, host):
            return None
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0
    return None


def is_endless(effect: Effect, host: Host) -> bool:
    """Return whether a command goes on after an effect neither by itself nor in another way than before."""
    if isinstance(effect, Input):
        return host.has_open_input
    return isinstance(effect, RepeatedIteration) or (isinstance(effect, Sleep) and effect.seconds == inf)


def identity_of(pod: ReadOnlyTree, container: ReadOnlyTree) -> ContainerUser:
    """Return the user and the groups of a container: the pod's, else those of its image, else root."""
    context = security_context(pod, container)
    user = context.get("runAsUser")
    if user is None:
        image = behavior_of(container)
        user = image.user if image is not None else None
    groups = (context.get("fsGroup"), *(context.get("supplementalGroups") or ()))
    others = tuple(number for number in groups if number is not None)
    return ContainerUser(user or 0, context.get("runAsGroup") or 0, others)

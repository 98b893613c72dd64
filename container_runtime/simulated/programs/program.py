"""The program of a container: how long its command runs, and its exit code.

Pure. The command is interpreted. The result is None for a command that is not simulated.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.simulated.images.table import behavior_of, file_places
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileError, FileSystem, ImagePlaces
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.invoking import NOT_FOUND
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
from mockube.container_runtime.simulated.shell.programs.registry import PROGRAMS
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError

KILLED: Final = 137
"""The exit code of a process that was killed by SIGKILL."""
DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"
MAX_MESSAGE: Final = 4096
MAX_LOG_MESSAGE: Final = 2048
"""The maximum bytes of a termination message: from its file, and from the end of the log."""
MAX_RUNS: Final = 10
"""The number of restarts that are interpreted; later runs are like the last of them."""
MAX_COMMANDS: Final = 5_000
"""The number of commands after which a script counts as endless."""

MAX_EFFECTS: Final = 50_000


class RunBehavior(Struct, frozen=True, kw_only=True):
    """The behavior of one run of a container."""

    seconds: float | None
    """The duration of the run; None if it runs until it is stopped."""
    exit_code: int = 0
    stop_code: int = 0
    """The exit code when the container is stopped: `KILLED` unless the program handles SIGTERM."""
    message: str = ""
    """The termination message."""
    leaves_files: bool = False
    """Whether the run leaves files in its volumes, which the next run can read."""
    reads_time: bool = False
    """Whether the run ends, and may do so as the time demands at which it starts."""


SERVICE: Final = RunBehavior(seconds=None)
EXITS_IMMEDIATELY: Final = RunBehavior(seconds=0)
RUNS_FOREVER: Final = RunBehavior(seconds=None, stop_code=KILLED)

_PAUSE_IMAGE: Final = re.compile(r"(?:.*/)?pause(?:-[a-z0-9]+)?(?:[:@].*)?")
ANY_YEAR: Final = 2030
_HOSTNAME: Final = re.compile(r"hostname|uname", re.IGNORECASE)


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


def has_default_command(container: Mapping[str, Any]) -> bool:
    """Return whether a container runs the command of its image."""
    return not container.get("command") and not container.get("args")


def has_open_input(container: Mapping[str, Any]) -> bool:
    """Return whether the standard input of a container waits for a client; that of others is empty."""
    return bool(container.get("stdin") or container.get("tty"))


def unknown_program_of(container: Mapping[str, Any], context: CommandContext = _DEFAULT_CONTEXT) -> str:
    """Return the program in a container's command that is not simulated; "" if there is none."""
    invocation = invocation_of(container, context)
    program = None if invocation is None else _interpret(invocation, 0, None)
    if not isinstance(program, UnknownCommand):
        return ""
    return name_unknown(container, program.name, has_script=context.script is not None)


def name_unknown(container: Mapping[str, Any], name: str, *, has_script: bool) -> str:
    """Return the name of a program that is not simulated: the image's own if the container has only arguments for it."""
    has_command = has_script or bool(container.get("command"))
    if not has_command and name in (container.get("args") or ())[:1]:
        return f"the image {container.get('image')}"
    return name


def scripted_program(script: Script, program: RunBehavior, restarts: int) -> RunBehavior:
    """Return the program of the run after `restarts` restarts: the script's, or else the container's own."""
    if script.crash_times is not None:
        fails = restarts < script.crash_times
    else:
        fails = script.fail_with_code is not None
    if fails:
        code = 1 if script.fail_with_code is None else script.fail_with_code
        return RunBehavior(seconds=script.exit_after or 0, exit_code=code)
    if script.exit_after is not None:
        return RunBehavior(seconds=script.exit_after, exit_code=0, stop_code=program.stop_code)
    return program


def invocation_of(container: Mapping[str, Any], context: CommandContext) -> "Invocation | None":
    """Return the container's command with its context; None if the command is the image's own."""
    argv = ("sh", "-c", context.script) if context.script is not None else command_of(container)
    if not argv:
        return None
    text = "\0".join(argv)
    variables = context.environment() if "$" in text else {}
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


def expand_references(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Replace $(NAME) as a kubelet does: unknown names are left unchanged, such as scripts, and $$ elsewhere becomes a dollar."""
    return [_expand(argument, environment) for argument in argv]


def _expand(text: str, environment: Mapping[str, str]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, name in _references(text):
        parts += [text[position:start], "$" if name is None else environment.get(name, text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


def reference_names(text: str) -> frozenset[str]:
    """Return the names in a text's references $(NAME)."""
    return frozenset(name for _, _, name in _references(text) if name is not None)


def _references(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the place of each $(NAME) with its name, and of each $$ with None. Linear, which no regular expression would be."""
    position, last = 0, text.rfind(")")
    while (start := text.find("$", position)) >= 0:
        position = start + 1
        if text.startswith("$$", start):
            position = start + 2
            yield start, position, None
        elif start < last and text.startswith("$(", start):
            end = text.index(")", start)
            position = end + 1
            yield start, position, text[start + 2 : end]


def expand_probe_command(argv: Sequence[str], container: Mapping[str, Any]) -> tuple[str, ...]:
    """Replace references in the command of a probe: a kubelet knows only the values in the specification, and no others."""
    values = {entry["name"]: entry.get("value") or "" for entry in container.get("env") or ()}
    return tuple(expand_references(argv, values))


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
    )
    command = list(invocation.argv)
    if command[0] == "exit":
        command = ["sh", "-c", " ".join(command)]
    return host, run_command(host, command, values)


def _run_once(
    invocation: Invocation, files: FileSystem, started: datetime | None
) -> RunBehavior | UnknownCommand:
    host, execution = start_invocation(invocation, files, started)
    log = bytearray()
    try:
        code = _run_to_end(execution, host, log)
    except UnknownProgram as error:
        if invocation.fails_unknown:
            return RunBehavior(seconds=host.elapsed, exit_code=NOT_FOUND)
        return UnknownCommand(str(error))
    except (ShellSyntaxError, RecursionError) as error:
        return UnknownCommand(f"its script ({error})")
    if code is None:
        return RUNS_FOREVER
    log_tail = log.decode("utf-8", "replace") if invocation.falls_back_to_log and code else ""
    seconds = host.elapsed
    return RunBehavior(
        seconds=seconds,
        exit_code=code,
        stop_code=KILLED if seconds else 0,
        message=termination_message(files, invocation.message_path) or log_tail,
        leaves_files=any(files.exists(volume) for volume in invocation.volumes),
        reads_time=host.time_reads > 0,
    )


def termination_message(files: FileSystem, path: str) -> str:
    """Return the message that a run has written into a file; "" without one."""
    try:
        return files.read(path)[:MAX_MESSAGE].decode("utf-8", "replace") if files.exists(path) else ""
    except FileError:
        return ""


def _run_to_end(execution: Run, host: Host, log: bytearray) -> int | None:
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
        if commands > MAX_COMMANDS or is_endless(effect, host):
            return None
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0
    return None


def is_endless(effect: Effect, host: Host) -> bool:
    """Return whether a command goes on after an effect neither by itself nor in another way than before."""
    if isinstance(effect, Input):
        return host.has_open_input
    return isinstance(effect, RepeatedIteration) or (isinstance(effect, Sleep) and effect.seconds == inf)

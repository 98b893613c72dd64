"""The program of a container: how long its command runs, and its exit code.

Pure. The command is interpreted; for one that is not simulated the caller passes a default.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.controller_manager.kubelet.shell.filesystem import Entry, FileError, FileSystem
from mockube.controller_manager.kubelet.shell.invocation import run_command
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Effect,
    Host,
    Output,
    RepeatedIteration,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.controller_manager.kubelet.shell.programs import PROGRAMS
from mockube.controller_manager.kubelet.shell.syntax import ShellSyntaxError

KILLED: Final = 137
"""The code of a process that SIGKILL ended."""
MAX_MESSAGE: Final = 4096
MAX_LOG_MESSAGE: Final = 2048
"""Bytes of a termination message, from its file or from the end of the log."""
MAX_RUNS: Final = 10
"""Restarts beyond these are as the last of them."""
MAX_TURNS: Final = 5_000
"""A script of more commands counts as one that runs on."""
MAX_EFFECTS: Final = 50_000


class Program(Struct, frozen=True, kw_only=True):
    seconds: float | None
    """None for one that runs until it is stopped."""
    exit_code: int = 0
    stop_code: int = 0
    message: str = ""
    """What it leaves as its termination message."""
    leaves_files: bool = False
    """In its volumes, where the next run finds them."""
    """With which it ends when it is stopped: a process that is not made to be stopped is killed."""


SERVICE: Final = Program(seconds=None)
EXITS_IMMEDIATELY: Final = Program(seconds=0)
RUNS_ON: Final = Program(seconds=None, stop_code=KILLED)

_PAUSE_IMAGE: Final = re.compile(r"(?:.*/)?pause(?:-[a-z0-9]+)?(?:[:@].*)?")
REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_AGNHOST_IMAGE: Final = re.compile(r"(?:.*/)?agnhost(?:[:@].*)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


Places = tuple[tuple[str, str], ...]
"""The names of volumes, and where they are mounted."""


class CommandContext(Struct, frozen=True, kw_only=True):
    """What decides, besides its specification, what a container's command does."""

    script: str | None = None
    """A shell script that replaces the command."""
    environment: Callable[[], Mapping[str, str]] = dict
    identity: tuple[int, int] = (0, 0)
    volumes: tuple[str, ...] = ()
    """The folders that are empty at first, and keep their files when the container restarts."""
    places: Places = ()
    """Those of them that other containers of the pod have as well."""
    before: "tuple[Invocation, ...]" = ()
    """What ran before and has left files in these places."""


_ALONE: Final = CommandContext()


def program_of(
    container: Mapping[str, Any], context: CommandContext = _ALONE, restarts: int = 0
) -> Program | None:
    """Return the container's program, or None for an unknown command."""
    invocation = invocation_of(container, context)
    if invocation is None:
        return RUNS_ON if _PAUSE_IMAGE.fullmatch(container.get("image") or "") else None
    program = _interpret(invocation, min(restarts, MAX_RUNS))
    if program and program.message and _needs_references(container, "\0".join(invocation.argv)):
        return replace(program, message="")
    return program


def invocation_of(container: Mapping[str, Any], context: CommandContext) -> "Invocation | None":
    """None of a container whose command is that of its image."""
    argv = ("sh", "-c", context.script) if context.script is not None else command_of(container)
    if not argv:
        return None
    text = "\0".join(argv)
    variables = context.environment() if "$" in text else {}
    return Invocation(
        argv=argv,
        environment=tuple((name, value) for name, value in variables.items() if name in text),
        identity=context.identity,
        message_path=container.get("terminationMessagePath") or "/dev/termination-log",
        shows_log=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        volumes=context.volumes,
        places=context.places,
        before=context.before,
    )


def _needs_references(container: Mapping[str, Any], text: str) -> bool:
    """Whether a variable that the command may use comes from a ConfigMap or a Secret."""
    return "$" in text and bool(
        container.get("envFrom")
        or any(
            {"configMapKeyRef", "secretKeyRef"} & (entry.get("valueFrom") or {}).keys()
            for entry in container.get("env") or ()
        )
    )


def command_of(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a container's command; that of a known image is the default."""
    command, arguments = container.get("command") or (), container.get("args") or ()
    if not command and _AGNHOST_IMAGE.fullmatch(container.get("image") or ""):
        return ("/agnhost", *(arguments or ("pause",)))
    return (*command, *arguments)


def expand_references(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Replace $(NAME) as a kubelet does: what is not there is left as it is, and $$ is a dollar."""

    def replace(match: re.Match[str]) -> str:
        return "$" if match[1] is None else environment.get(match[1], match[0])

    return [REFERENCE.sub(replace, argument) for argument in argv]


class Invocation(Struct, frozen=True, kw_only=True):
    """All that decides what a command does."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    identity: tuple[int, int]
    message_path: str
    shows_log: bool
    volumes: tuple[str, ...]
    places: Places
    before: "tuple[Invocation, ...]"


@lru_cache(maxsize=4096)
def _interpret(invocation: Invocation, restarts: int) -> Program | None:
    """The run after so many restarts, each of which found what the runs before left in its volumes."""
    files = _first_files(invocation)
    program = _run_once(invocation, files)
    for _ in range(restarts):
        if program is None or not program.leaves_files:
            break
        files = FileSystem(_left_files(invocation, files), is_partial=True, volumes=invocation.volumes)
        program = _run_once(invocation, files)
    return program


def _first_files(invocation: Invocation) -> FileSystem:
    """What a command finds in its volumes: what those before it have left there, one after the other."""
    content: dict[str, dict[str, Entry]] = {}
    for earlier_invocation in invocation.before:
        files = FileSystem(
            _in_places(content, earlier_invocation.places),
            is_partial=True,
            volumes=earlier_invocation.volumes,
        )
        _run_once(earlier_invocation, files)
        for volume, place in earlier_invocation.places:
            paths = files.walk(place) if files.exists(place) else ()
            content[volume] = {path[len(place) :]: files.entry(path) for path in paths}
    entries = _in_places(content, invocation.places)
    return FileSystem(entries, is_partial=True, volumes=invocation.volumes)


def _in_places(content: Mapping[str, Mapping[str, Entry]], places: Places) -> dict[str, Entry]:
    return {
        place + path: entry for volume, place in places for path, entry in content.get(volume, {}).items()
    }


def _left_files(invocation: Invocation, files: FileSystem) -> dict[str, Entry]:
    volumes = (volume for volume in invocation.volumes if files.exists(volume))
    return {path: files.entry(path) for volume in volumes for path in files.walk(volume)}


def _run_once(invocation: Invocation, files: FileSystem) -> Program | None:
    values = dict(invocation.environment)
    user, group = invocation.identity
    host = Host(
        name="localhost",
        user=user,
        group=group,
        files=files,
        now=lambda: _EPOCH,
        is_strict=True,
        programs=PROGRAMS,
    )
    command = expand_references(invocation.argv, values)
    if command[0] == "exit":
        command = ["sh", "-c", " ".join(command)]
    log = bytearray()
    try:
        code = _code_of(run_command(host, command, values), host, log)
    except (UnknownProgram, ShellSyntaxError, RecursionError):
        return None
    if code is None:
        return RUNS_ON
    log_tail = log.decode("utf-8", "replace") if invocation.shows_log and code else ""
    seconds = host.elapsed
    return Program(
        seconds=seconds,
        exit_code=code,
        stop_code=KILLED if seconds else 0,
        message=_message(files, invocation.message_path) or log_tail,
        leaves_files=any(files.exists(volume) for volume in invocation.volumes),
    )


def _message(files: FileSystem, path: str) -> str:
    try:
        return files.read(path)[:MAX_MESSAGE].decode("utf-8", "replace") if files.exists(path) else ""
    except FileError:
        return ""


def _code_of(running: Run, host: Host, log: bytearray) -> int | None:
    """Run to the end; None if there is none, or none that is near."""
    turns = 0
    for _ in range(MAX_EFFECTS):
        try:
            effect = next(running)
        except StopIteration as ended:
            code: int = ended.value
            return code
        turns += isinstance(effect, CommandStart)
        if isinstance(effect, Output):
            log += effect.data
            del log[:-MAX_LOG_MESSAGE]
        if turns > MAX_TURNS or _is_endless(effect):
            return None
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0
    return None


def _is_endless(effect: Effect) -> bool:
    return isinstance(effect, RepeatedIteration) or (isinstance(effect, Sleep) and effect.seconds == inf)

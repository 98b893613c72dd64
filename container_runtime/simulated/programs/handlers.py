"""Commands that a kubelet executes in a simulated container, in probes and hooks, and their results over the time of a run. Pure.

A command is interpreted in the files that the container's own command has written up to then. Its result is None where it cannot
be known: a program is not simulated, unless such programs fail, or a file or a variable may be the image's.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.container_runtime.behavior import KILLED, NOT_FOUND, CommandResult, Timeline
from mockube.container_runtime.images.programs import ImagePrograms
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.outside import (
    HOST_NAME,
    OutsideAnswer,
    ProcessesAsked,
    ValueAsked,
)
from mockube.container_runtime.simulated.shell.process import (
    Host,
    OtherProcess,
    Output,
    RepeatedIteration,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.image_folders import ImagePlaces
from mockube.container_runtime.simulated.shell.vfs.mount_table import MountTable, WriteProtection
from mockube.container_runtime.simulated.shell.vfs.unknown_files import UnknownFiles
from mockube.container_runtime.start_errors import StartError

from . import program
from .advance_budget import AdvanceBudget
from .object_values import ObjectVariables
from .other_processes import with_listed
from .program import Invocation

MAX_TIMES: Final = 100
"""The number of times at which the container's command may change files; later changes have no effect on results."""
MAX_OUTPUT: Final = 10 << 10
"""The bytes of output that a kubelet reads."""
_OF_SYSTEMS: Final = ("/etc/", "/dev/")
"""Where every container has files, of which a command gets those for which it asks."""
_OF_EVERY_CONTAINER: Final = ("/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/proc/", "/sys/fs/cgroup")
"""Files that differ from pod to pod."""


class HandlerCommand(Struct, frozen=True, kw_only=True):
    """A command of a probe or a hook, and what determines its result besides files."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    identity: ContainerUser
    protection: WriteProtection = ()
    fails_unknown: bool = False
    """Whether programs that are not simulated fail."""
    image: str = ""
    user_names: tuple[tuple[int, str], ...] = ()
    group_names: tuple[tuple[int, str], ...] = ()
    """The accounts of the image."""
    installed: ImagePrograms | None = None
    """The programs of the image; None if nobody knows them."""
    places: ImagePlaces | None = None
    other_processes: tuple[OtherProcess, ...] | None = None
    """The processes that run beside it; None if they are not known."""
    outside: tuple[str, ...] = ()
    """The mount paths of volumes whose files others may write."""
    object_variables: ObjectVariables = ObjectVariables()
    hostname: str = ""
    """The host name; "" until it asks for it."""
    files: tuple[tuple[str, FileEntry], ...] = ()
    """The files of every container for which it has asked."""
    asked_files: frozenset[str] = frozenset()
    """The paths for which it has asked, whether there are files or not."""


class HandlerOutcome(NamedTuple):
    """What is known in advance of the command of a probe or a hook."""

    timeline: Timeline | None
    """Its results during a run of the container; None if it runs on the clock."""
    interferes: bool
    """Whether it writes files that others may read, or may do so or send signals, as it asks for what nobody knows in advance."""
    missing_value: str = ""
    """The value of its pod, or the file, for which it asks and which it lacks; "" without one."""


class UnknownFile(UnknownProgram):
    """Nobody knows whether a file exists."""


class _UnknownOfCommand(UnknownFiles):
    """The unknown files of a command. A path that has no entry, and may be one of the image, raises `UnknownFile`."""

    def __init__(
        self,
        mounts: MountTable,
        command: HandlerCommand,
        folders: tuple[str, ...] | None,
        absent: Collection[str],
    ) -> None:
        super().__init__(mounts, is_partial=True, places=command.places)
        self._folders = folders or ()
        self._knows_writers = folders is not None
        self._absent = absent
        self._asked_files = command.asked_files

    def hides(self, path: str) -> bool:
        return f"{path}/".startswith(self._folders) or super().hides(path)

    def may_exist(self, path: str) -> bool:
        if path.startswith(_OF_SYSTEMS) and path not in self._asked_files:
            raise ValueAsked(path)
        if path.startswith(_OF_EVERY_CONTAINER):
            raise OutsideAnswer(path)
        if not path.startswith(self._folders) and path not in self._absent and self._may_have(path):
            raise UnknownFile(path)
        return False

    def _may_have(self, path: str) -> bool:
        """Return whether the image may have a path, or paths below it, or somebody may have written it."""
        possible = None if self.places is None or not self._knows_writers else self.places.possible
        if possible is None or f"{path}/".startswith(possible):
            return True
        return any(place.startswith(f"{path.rstrip('/')}/") for place in possible)

    def is_present(self, path: str) -> bool:
        return self.may_exist(path)

    def check_listing(self, path: str) -> None:
        if not f"{path}/".startswith(self._folders) and self._may_have(path):
            raise UnknownFile(path)


class _Changes:
    """Whether a command changes files."""

    def __init__(self) -> None:
        self.any = False

    def note(self) -> None:
        self.any = True


def _known_files(
    files: Mapping[str, FileEntry],
    command: HandlerCommand,
    changes: _Changes,
    folders: tuple[str, ...] | None = None,
    absent: Collection[str] = (),
) -> FileSystem:
    """Return the files of a container, of which some are unknown.

    All files in `folders` are known, and the paths in `absent` do not exist; without `folders`, nobody knows what writes files.
    """
    prefixes = tuple(f"{path.rstrip('/')}/" for path in command.outside)
    known = FileSystem(
        {path: entry for path, entry in files.items() if not f"{path}/".startswith(prefixes)},
        places=command.places,
        mounts=dict.fromkeys(command.outside, program.OUTSIDE),
        user=command.identity,
        protection=command.protection,
        on_change=changes.note,
    )
    return known.view(unknown=_UnknownOfCommand(known.mounts, command, folders, absent))


@lru_cache(maxsize=4096)
def outcome_of(
    main: Invocation | None, command: HandlerCommand, folders: tuple[str, ...] | None
) -> HandlerOutcome | None:
    """Return what a command does during a run of the container's command `main`; None if it asks for processes, and they are not known.

    The result of a command that is not simulated is None.

    The `folders` are empty at the start of the run; only `main` writes into them, or nobody without it. They are None if nobody
    knows what the container's own program writes.
    """
    try:
        return _outcome(main, command, folders)
    except ProcessesAsked:
        return None
    except ValueAsked as error:
        return HandlerOutcome(
            None, interferes=True, missing_value=error.name if lacks(command, error.name) else ""
        )
    except OutsideAnswer:
        return HandlerOutcome(None, interferes=True)


def lacks(command: HandlerCommand, missing_value: str) -> bool:
    """Return whether a command lacks a value, which the container's own command may lack instead."""
    if missing_value == HOST_NAME:
        return not command.hostname
    return missing_value in command.object_variables.left_out or (
        missing_value.startswith(_OF_SYSTEMS) and missing_value not in command.asked_files
    )


def _outcome(
    main: Invocation | None, command: HandlerCommand, folders: tuple[str, ...] | None
) -> HandlerOutcome:
    budget = AdvanceBudget()
    if main is None:
        changes = _Changes()
        known = _known_files(dict(command.files), command, changes, folders)
        return HandlerOutcome(((0.0, _run_command(command, known, budget)),), changes.any)
    files = program.initial_files(main, budget)
    host, execution = program.start_invocation(main, files)
    seen: set[str] = set()
    results: list[tuple[float, CommandResult | None]] = []
    at, interferes = 0.0, False
    for _ in range(MAX_TIMES):
        next_at = _run_until_sleep(execution, host, budget)
        if next_at is None and results:
            break
        entries = {**dict(command.files), **dict(files.inodes.below("/"))}
        seen |= entries.keys()
        changes = _Changes()
        known = _known_files(entries, command, changes, folders, seen)
        result = _run_command(_beside(command, host), known, budget)
        interferes |= changes.any
        if not results or results[-1][1] != result:
            results.append((at, result))
        if next_at is None or next_at == inf:
            break
        at = next_at
    return HandlerOutcome(tuple(results), interferes)


class UnknownOfHandler(NamedTuple):
    """What a command needs that is not known."""

    program: str
    """The program that is not simulated, and on which its result depends from the start; "" if there is none."""
    missing_value: str = ""
    """The value of its pod, or the file, for which it asks first; "" if it has what it asks for."""


@lru_cache(maxsize=4096)
def unknown_program_of_handler(command: HandlerCommand) -> UnknownOfHandler:
    host, execution = _start_command(
        replace(command, fails_unknown=False), _known_files(dict(command.files), command, _Changes())
    )
    budget = AdvanceBudget()
    try:
        while True:
            effect = budget.advance(execution)
            host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0
            if host.elapsed == inf or isinstance(effect, RepeatedIteration):
                break
    except UnknownProgram as error:
        return UnknownOfHandler("" if isinstance(error, UnknownFile) else str(error))
    except ValueAsked as error:
        return UnknownOfHandler("", error.name)
    except (StopIteration, OutsideAnswer, OutOfMemory, StartError, ShellSyntaxError, RecursionError):
        pass
    return UnknownOfHandler("")


def _run_until_sleep(execution: Run, host: Host, budget: AdvanceBudget) -> float | None:
    """Run a command until time passes; return the time at which it continues, infinite if nothing changes any more.

    Return None after an iteration of a loop that has changed nothing: all later ones are like it.
    """
    while True:
        try:
            effect = budget.advance(execution)
        except (StopIteration, OutOfMemory, StartError, UnknownProgram, ShellSyntaxError, RecursionError):
            return inf
        if isinstance(effect, RepeatedIteration):
            if effect.changes:
                continue
            return None
        if program.is_endless(effect, host):
            return inf
        if isinstance(effect, Sleep) and effect.seconds:
            host.elapsed += effect.seconds
            return host.elapsed


def _beside(command: HandlerCommand, host: Host) -> HandlerCommand:
    """Return a command that runs beside the processes of the container's own command, if its result depends on them."""
    if (
        command.other_processes is None or len(command.other_processes) != 1
    ):  # None, or those of other containers.
        return command
    first = command.other_processes[0]
    listed = with_listed(first, host.listed_processes())
    return replace(
        command,
        other_processes=tuple(replace(each, send_signal=first.send_signal) for each in listed),
    )


def _start_command(command: HandlerCommand, files: FileSystem) -> tuple[Host, Run]:
    invocation = Invocation(
        argv=command.argv,
        environment=command.environment,
        identity=command.identity,
        object_variables=command.object_variables,
        hostname=command.hostname,
        pid=0,
        fails_unknown=command.fails_unknown,
        image=command.image,
        user_names=command.user_names,
        group_names=command.group_names,
        installed=command.installed,
    )
    return program.start_invocation(
        invocation,
        files,
        other_processes=command.other_processes,
        ask_variable=partial(_ask, command.object_variables),
    )


def ask_image(name: str) -> None:
    """Raise `UnknownFile` about a variable that is not set, as the image may set it."""
    if name:
        raise UnknownFile(f"the variable {name}")


def _ask(variables: ObjectVariables, name: str) -> None:
    variables.ask(name)
    ask_image(name)


def _run_command(command: HandlerCommand, files: FileSystem, budget: AdvanceBudget) -> CommandResult | None:
    host, execution = _start_command(command, files)
    try:
        return _run_to_result(host, execution, budget)
    except StartError as error:
        return CommandResult(exit_code=NOT_FOUND, start_error=str(error), seconds=host.elapsed)
    except UnknownProgram as error:
        return end_of_unknown(error, host.elapsed, fails=command.fails_unknown)
    except (ShellSyntaxError, RecursionError):
        return None


def _run_to_result(host: Host, execution: Run, budget: AdvanceBudget) -> CommandResult:
    output = bytearray()
    try:
        while True:
            effect = budget.advance(execution)
            _require_timeless(host)
            if isinstance(effect, RepeatedIteration):
                host.elapsed = inf
            if isinstance(effect, Output) and len(output) < MAX_OUTPUT:
                output += effect.data
            if isinstance(effect, Sleep):
                host.elapsed += effect.seconds
            if host.elapsed == inf:
                return CommandResult(exit_code=0, seconds=inf)
    except StopIteration as stop:
        _require_timeless(host)
        # Nobody reads the output of a success, and the results before and after another output are the same.
        text = output[:MAX_OUTPUT].decode("utf-8", "replace") if stop.value else ""
        if stop.value and host.unlisted:
            raise UnknownProgram(host.unlisted) from None
        return CommandResult(exit_code=stop.value, output=text, seconds=host.elapsed)
    except OutOfMemory:
        return CommandResult(exit_code=KILLED, seconds=host.elapsed)


def _require_timeless(host: Host) -> None:
    """Raise `OutsideAnswer` for a command that reads the time, which differs from one probe to the next."""
    if host.time_reads:
        raise OutsideAnswer


def end_of_unknown(error: UnknownProgram, seconds: float, *, fails: bool) -> CommandResult | None:
    """Return the end of a command whose program is not simulated; None if nobody can know it, as where a file may exist or not."""
    if isinstance(error, UnknownFile) or not fails:
        return None
    text = f"mockube: {error} is not simulated\n"
    return CommandResult(exit_code=NOT_FOUND, output=text, seconds=seconds)

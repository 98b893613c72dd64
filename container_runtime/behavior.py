"""What a container's run does, as far as a run-time knows it before: its duration, its exit code, its message. Pure."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Final

from msgspec import Struct

from .extras import hint, missing_distribution
from .load import NO_LOAD, RunLoad

TERM: Final = 15
"""The number of SIGTERM."""
KILLED: Final = 137
"""The exit code of a process that was killed by SIGKILL."""
_MESSAGE_PATH: Final = "/dev/termination-log"
MAX_MESSAGE: Final = 4096
MAX_LOG_MESSAGE: Final = 2048
"""The maximum bytes of a termination message: from its file, and from the end of the log."""

NOT_FOUND: Final = 127
"""The exit code of a command whose program does not exist."""


class RunBehavior(Struct, frozen=True, kw_only=True):
    """The behavior of one run of a container."""

    seconds: float | None
    """The duration of the run; None if it runs until it is stopped."""
    exit_code: int = 0
    stop_code: int = 0
    """The exit code when the container is stopped: `KILLED` unless the program handles SIGTERM."""
    stop_seconds: float = 0.0
    """The duration of its end after SIGTERM; infinite for a program that goes on, as most do that are the first of a container."""
    handles_signals: bool = False
    """Whether a trap of its script decides what it does after a signal, which depends on the time of the signal."""
    message: str = ""
    """The termination message."""
    leaves_files: bool = False
    """Whether the run leaves files in its volumes, which the next run can read."""
    reads_time: bool = False
    """Whether the run ends, and may do so as the time demands at which it starts."""
    load: RunLoad = NO_LOAD
    start_error: str = ""
    """Why the container cannot be started; "" if it can."""
    is_certain: bool = True
    """Whether it was computed to its end, and nothing in it depends on what its container alone does not know."""
    changes_files: bool = True
    """Whether it changes files, or may do so."""
    is_assumed: bool = False
    """Whether nothing is known of its end, because its program is not simulated."""


SERVICE: Final = RunBehavior(seconds=None)
RUNS_FOREVER: Final = RunBehavior(seconds=None, stop_code=KILLED, stop_seconds=inf)
"""A program that runs until it is killed: the kernel ends the first process of a container only by a signal that it handles."""


def end_at_start(container: Mapping[str, Any], exit_code: int, lines: Iterable[str]) -> RunBehavior:
    """Return the run of a program that logs some lines and ends at once."""
    has_message = exit_code and falls_back_to_log(container)
    message = "".join(f"{line}\n" for line in lines) if has_message else ""
    return RunBehavior(seconds=0, exit_code=exit_code, message=message)


def falls_back_to_log(container: Mapping[str, Any]) -> bool:
    """Return whether the end of the log is the termination message of a run that fails without another."""
    return container.get("terminationMessagePolicy") == "FallbackToLogsOnError"


def message_path(container: Mapping[str, Any]) -> str:
    """Return the path of the file from which the termination message is read."""
    return container.get("terminationMessagePath") or _MESSAGE_PATH


class StopReaction(Struct, frozen=True):
    """What a program does after the signal that stops its container."""

    seconds: float = 0.0
    """The duration of its end; infinite if it goes on."""
    exit_code: int = 0


def has_default_command(container: Mapping[str, Any]) -> bool:
    """Return whether a container runs the command of its image."""
    return not container.get("command") and not container.get("args")


def has_open_input(container: Mapping[str, Any]) -> bool:
    """Return whether the standard input of a container waits for a client; that of others is empty."""
    return bool(container.get("stdin") or container.get("tty"))


def name_unknown(container: Mapping[str, Any], name: str, *, has_script: bool) -> str:
    """Return the name of a program that is not simulated: the image's own if the container has only arguments for it, as is an option."""
    has_command = has_script or bool(container.get("command"))
    if (
        not has_command
        and not missing_distribution(name)
        and (name.startswith("-") or name in (container.get("args") or ())[:1])
    ):
        return f"the image {container.get('image')}"
    return name


class CommandResult(Struct, frozen=True, kw_only=True):
    """The end of a command."""

    exit_code: int
    output: str = ""
    seconds: float = 0.0
    """Its duration; infinite if it does not end."""
    start_error: str = ""
    """Why it could not be started; "" if it was."""


Timeline = tuple[tuple[float, CommandResult | None], ...]
"""The results of a command, each with the time from which on it is the result, in seconds from the start of the run."""
UNKNOWN_TIMELINE: Final[Timeline] = ((0.0, None),)

CONTINUES: Final = "its exit code is 127, and the command that called it goes on"
"""What happens where an interactive command calls one."""


def end_of_handler(field: str, *, fails: bool) -> str:
    """Return what becomes of a probe or a hook without its program."""
    return f"its {field} {'fails' if fails else 'succeeds'} without it"


NOT_SIMULATED: Final = "NotSimulated"
"""The reason of events about what is not simulated, and of the end of a run that is only assumed."""


def not_simulated(container: Mapping[str, Any], program: str, end: str, distribution: str = "") -> str:
    """Return the message about a program of a container that is not simulated; "" is that of its image.

    The message names the `distribution` that simulates it, or else that of the program.
    """
    image = f"the image {container.get('image')}"
    names_image = " the image " in f" {program}"
    subject = f"{program} of {image}" if program and not names_image else program or image
    return f"{subject} is not simulated{hint(distribution or missing_distribution(program))}: {end}"


WAITS: Final = "the container waits until it is"
"""What becomes of a container that does not go on without a program."""


def end_without_program(exit_code: int | None) -> str:
    """Return what becomes of a container; it runs on without an exit code."""
    if exit_code is None:
        return "the container runs without it until it is stopped"
    return f"the container ends with exit code {exit_code} without it"

"""What the command of a container does: how long it runs, and with which code it ends.

Pure. The command is interpreted; of one that is not simulated nothing is known, and the caller says what stands for it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any, Final

from mockube.controller_manager.kubelet.shell.filesystem import FileSystem
from mockube.controller_manager.kubelet.shell.invocation import run_command
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Effect,
    Host,
    Repeated,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.controller_manager.kubelet.shell.programs import PROGRAMS
from mockube.controller_manager.kubelet.shell.syntax import ShellSyntaxError

KILLED: Final = 137
"""The code of a process that SIGKILL ended."""
MAX_TURNS: Final = 5_000
"""A script of more commands counts as one that runs on."""
MAX_EFFECTS: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    seconds: float | None
    """None for one that runs until it is stopped."""
    exit_code: int = 0
    stop_code: int = 0
    """With which it ends when it is stopped: a process that is not made to be stopped is killed."""


SERVICE: Final = Program(seconds=None)
ENDS_AT_ONCE: Final = Program(seconds=0)
RUNS_ON: Final = Program(seconds=None, stop_code=KILLED)

_PAUSE_IMAGE: Final = re.compile(r"(?:.*/)?pause(?:-[a-z0-9]+)?(?:[:@].*)?")
_REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def program_of(container: Mapping[str, Any], script: str | None = None) -> Program | None:
    """What the container does, or None where its command does not tell; a script stands for its command."""
    argv = ("sh", "-c", script) if script is not None else command_of(container)
    if argv:
        uses_environment = any("$" in argument for argument in argv)
        return _interpreted(argv, _literals(container) if uses_environment else ())
    return RUNS_ON if _PAUSE_IMAGE.fullmatch(container.get("image") or "") else None


def command_of(container: Mapping[str, Any]) -> tuple[str, ...]:
    return (*(container.get("command") or ()), *(container.get("args") or ()))


def expand_references(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Replace $(NAME) as a kubelet does: what is not there is left as it is, and $$ is a dollar."""

    def replace(match: re.Match[str]) -> str:
        return "$" if match[1] is None else environment.get(match[1], match[0])

    return [_REFERENCE.sub(replace, argument) for argument in argv]


def _literals(container: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((entry["name"], entry.get("value") or "") for entry in container.get("env") or ())


@lru_cache(maxsize=4096)
def _interpreted(argv: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> Program | None:
    values = dict(environment)
    host = Host(
        name="localhost",
        files=FileSystem(is_partial=True),
        now=lambda: _EPOCH,
        is_strict=True,
        programs=PROGRAMS,
    )
    command = expand_references(argv, values)
    if command[0] == "exit":
        command = ["sh", "-c", " ".join(command)]
    running = run_command(host, command, values)
    try:
        code = _code_of(running, host)
    except (UnknownProgram, ShellSyntaxError, RecursionError):
        return None
    seconds = host.elapsed
    return (
        RUNS_ON
        if code is None
        else Program(seconds=seconds, exit_code=code, stop_code=KILLED if seconds else 0)
    )


def _code_of(running: Run, host: Host) -> int | None:
    """Run to the end; None if there is none, or none that is near."""
    turns = 0
    for _ in range(MAX_EFFECTS):
        try:
            effect = next(running)
        except StopIteration as ended:
            code: int = ended.value
            return code
        turns += isinstance(effect, CommandStart)
        if turns > MAX_TURNS or _is_endless(effect):
            return None
        host.elapsed += effect.seconds if isinstance(effect, Sleep) else 0
    return None


def _is_endless(effect: Effect) -> bool:
    return isinstance(effect, Repeated) or (isinstance(effect, Sleep) and effect.seconds == inf)

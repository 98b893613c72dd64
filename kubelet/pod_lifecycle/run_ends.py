"""The end of a container's computed run: that of its program, or else of the memory or of a command that kills it before. Pure."""

from datetime import datetime

from msgspec import Struct

from mockube.apimachinery.timestamps import after, span_of
from mockube.container_runtime.behavior import (
    KILLED,
    NOT_SIMULATED,
    RunBehavior,
    end_without_program,
    not_simulated,
)
from mockube.container_runtime.config.resource_limits import limit_of
from mockube.container_runtime.load import NO_LOAD, OOM_KILLED, RunLoad

from . import pod_memory
from .container_status import Container


class RunEnd(Struct, frozen=True, kw_only=True):
    at: datetime
    code: int
    reason: str = ""
    """The reason in the status; empty for Completed and Error."""
    message: str = ""


def end_of_run(container: Container, program: RunBehavior, started: datetime, restarts: int) -> RunEnd | None:
    """Return the first end of a run that `started` at a time; None if it goes on until it is stopped."""
    ends = [
        end
        for end in (
            _end_of_program(container, program, started),
            _out_of_memory(container, program, started),
            _kill(container, started, restarts),
        )
        if end is not None
    ]
    return min(ends, key=lambda end: end.at, default=None)


def _end_of_program(container: Container, program: RunBehavior, started: datetime) -> RunEnd | None:
    if program.seconds is None:
        return None
    at = after(started, span_of(program.seconds))
    if program.is_assumed:
        name = container.unknown_program() if container.unknown_program is not None else ""
        message = not_simulated(container.spec, name, end_without_program(program.exit_code))
        return RunEnd(at=at, code=program.exit_code, reason=NOT_SIMULATED, message=message)
    return RunEnd(at=at, code=program.exit_code, message=program.message)


def _out_of_memory(container: Container, program: RunBehavior, started: datetime) -> RunEnd | None:
    """Return the end of a run whose programs need more memory than its limit, or than the node has."""
    load = load_of(container, program)
    if not load.memory:
        return None
    limit = limit_of(container.pod, container.spec, "memory")
    seconds = load.exceeds_at(container.context.node_memory() if limit is None else limit)
    times = [
        time
        for time in (
            None if seconds is None else after(started, span_of(seconds)),
            pod_memory.killed_at(container, load, started),
        )
        if time is not None
    ]
    return RunEnd(at=min(times), code=KILLED, reason=OOM_KILLED) if times else None


def load_of(container: Container, program: RunBehavior) -> RunLoad:
    """Return what a run uses: its program, or else the server of the image unless an annotation replaces it."""
    return container.server_load if program is container.program and program.load is NO_LOAD else program.load


def _kill(container: Container, started: datetime, restarts: int) -> RunEnd | None:
    kill = container.context.kills.get(container.name)
    if kill is None or kill.restarts != restarts:
        return None
    return RunEnd(at=max(kill.at, started), code=kill.code, reason=kill.reason)

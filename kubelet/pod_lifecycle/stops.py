"""How containers stop: the duration of their ends after SIGTERM, within a grace period, and their exit codes. Pure."""

from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Final

from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import KILLED, StopReaction

from .container_status import Container, Role, running_since
from .hooks import pre_stop_result
from .scripted_runs import scripted_program

_Containers = Sequence[tuple[Container, ReadOnlyTree | None]]
MIN_GRACE: Final = 2.0
"""The seconds that a container has to end, also after a hook that has taken all of the grace period."""


def reaction_of(container: Container, status: ReadOnlyTree, at: datetime) -> StopReaction:
    """Return what a running container does that gets SIGTERM at a time; one in real time has ended already."""
    started = running_since(status)
    if started is None or container.process is not None:
        return StopReaction()
    restarts, seconds = status["restartCount"], max((at - started).total_seconds(), 0.0)
    program = container.program
    if container.program_of_run is not None:
        program = container.program_of_run(restarts=restarts, started=started) or program
    if program.handles_signals:
        reaction = container.context.predictions.reaction_of_run(
            container.pod,
            container.spec,
            container.script,
            seconds=seconds,
        )
    else:
        reaction = StopReaction(program.stop_seconds, program.stop_code)
    scripted = scripted_program(container.script, program, restarts)
    rest = inf if scripted.seconds is None else max(scripted.seconds - seconds, 0.0)
    return StopReaction(rest, scripted.exit_code) if rest < reaction.seconds else reaction


def stop_code(container: Container, status: ReadOnlyTree, begin: datetime, now: datetime) -> int:
    """Return the exit code of a container that is stopped from `begin` on, and has ended by now: its program's, or KILLED."""
    hook = pre_stop_result(container, status, begin).seconds
    signalled = now if hook == inf else min(after(begin, span_of(hook)), now)
    reaction = reaction_of(container, status, signalled)
    grace = max((now - signalled).total_seconds(), MIN_GRACE)
    return reaction.exit_code if reaction.seconds <= grace else KILLED


def stop_seconds(init: _Containers, others: _Containers, begin: datetime) -> float:
    """Return how long the running containers of a pod take to stop from `begin` on, without a limit.

    The sidecars are stopped in reverse order, after all others.
    """
    seconds = max((_seconds(container, status, begin) for container, status in others if status), default=0.0)
    for container, status in reversed(init):
        if status:
            earliest = seconds if container.role is Role.SIDECAR else 0.0
            seconds = max(seconds, _seconds(container, status, begin, earliest))
    return seconds


def _seconds(container: Container, status: ReadOnlyTree, begin: datetime, earliest: float = 0.0) -> float:
    """Return when a container has ended that gets SIGTERM after its preStop hook, and not earlier than a time."""
    signalled = max(pre_stop_result(container, status, begin).seconds, earliest)
    if signalled == inf or running_since(status) is None:
        return 0.0 if running_since(status) is None else inf
    return signalled + reaction_of(container, status, after(begin, span_of(signalled))).seconds

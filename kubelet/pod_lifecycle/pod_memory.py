"""The limit of a pod's memory: when its containers together need more, and which of them the kernel kills then. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import inf
from typing import Final, NamedTuple

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.quantity import number_or
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.load import FILL_RATE, NO_LOAD, RunLoad
from mockube.container_runtime.runs import container_status

from .container_status import Container

_ROUNDING: Final = timedelta(microseconds=1)
"""What a time in whole microseconds may lack."""


class _Use(NamedTuple):
    """The memory of a container that runs."""

    name: str
    load: RunLoad
    started: datetime

    def at(self, time: datetime) -> float:
        seconds = (time - self.started).total_seconds()
        return self.load.memory_at(seconds) if seconds >= 0 else 0.0


def memory_limit(pod: ReadOnlyTree) -> float:
    """Return the limit of a pod's memory; infinite without one."""
    return number_or(((pod["spec"].get("resources") or {}).get("limits") or {}).get("memory"), inf)


def killed_at(container: Container, load: RunLoad, started: datetime) -> datetime | None:
    """Return when the kernel kills a container as the one with the most memory of a pod that needs too much; None if it never does."""
    limit = memory_limit(container.pod)
    if limit == inf:
        return None
    uses = [_Use(container.name, load, started), *_others(container)]
    for time in sorted(time for use in uses for time in _times(use, limit)):
        if sum(use.at(time) for use in uses) > limit:
            largest = max(uses, key=lambda use: use.at(time))
            return time if largest.name == container.name else None
    return None


def _others(container: Container) -> Iterator[_Use]:
    pod, context = container.pod, container.context
    for other in every_container(pod["spec"]):
        status = container_status(pod, other["name"]) or {}
        begin = ((status.get("state") or {}).get("running") or {}).get("startedAt")
        if other["name"] == container.name or not begin:
            continue
        run_program = context.predictions.program_of_run(pod, other, container.script)
        started = parse_time(begin)
        behavior = run_program(restarts=status.get("restartCount") or 0, started=started)
        load = NO_LOAD if behavior is None else behavior.load
        if load is NO_LOAD:
            load = context.predictions.server_load(other, container.script)
        yield _Use(other["name"], load, started)


def _times(use: _Use, limit: float) -> Iterator[datetime]:
    """Yield the times at which the memory of a container may exceed a limit with that of others."""
    for step in use.load.memory:
        seconds = step.seconds + limit / FILL_RATE if step.size == inf else step.seconds
        yield after(use.started, span_of(seconds)) + _ROUNDING

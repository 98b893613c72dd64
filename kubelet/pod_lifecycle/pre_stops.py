"""The preStop hooks of a pod that is stopped: how long they take, and which have to run in real time. Pure."""

from collections.abc import Mapping
from datetime import datetime

from mockube.apimachinery.timestamps import after, span_of
from mockube.kubelet.step_effects import RunHook

from .containers import PodContainers
from .hooks import pre_stop_result


def pre_stop_ends(
    containers: PodContainers, begin: datetime, limit: float, now: datetime
) -> Mapping[str, datetime]:
    """Return the latest ends of the preStop hooks that still run, by the names of their simulated containers in real time."""
    hook_ends = {}
    for container, status in (*containers.init, *containers.main, *containers.ephemeral):
        if status and container.process is not None:
            seconds = min(pre_stop_result(container, status, begin).seconds, limit)
            if seconds and (end := after(begin, span_of(seconds))) > now:
                hook_ends[container.name] = end
    return hook_ends


def pending_pre_stops(containers: PodContainers, begin: datetime) -> tuple[RunHook, ...]:
    """Return the preStop hooks that have to run in real time when the running containers are stopped at `begin`."""
    return tuple(
        RunHook(container.name, "preStop", status["restartCount"])
        for container, status in (*containers.init, *containers.main, *containers.ephemeral)
        if status and pre_stop_result(container, status, begin).is_pending
    )

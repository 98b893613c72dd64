"""A pod in a few words: how many containers are ready, what it is up to, and how often it was restarted.

The words are those of the container that stands in the way, else the pod's own phase. Sidecars are init containers
that are restarted always; they run on beside the pod's containers and are counted with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from apimachinery import conditions, meta, wellknown
from apiserver.resources.columns.parts import condition, flag, items, number, part, text, time
from apiserver.wire.table import Tree

_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
_GATED: Final = "SchedulingGated"
_NODE_LOST: Final = "NodeLost"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatus:
    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: datetime | None


def of(pod: Tree) -> PodStatus:
    init = _initialization(pod)
    main = items(pod, "status", "containerStatuses")
    if init.reason and condition(pod, wellknown.CONDITION_INITIALIZED) != "True":
        started, ready, reason = init.statuses, init.ready, init.reason
    else:
        started = (*(status for status in init.statuses if _name(status) in init.sidecars), *main)
        ready = init.ready + sum(map(_is_running, main))
        reason = _containers_reason(pod, main, init.reason or _own_reason(pod))
    return PodStatus(
        ready=ready,
        total=len(items(pod, "spec", "containers")) + len(init.sidecars),
        reason=_deletion_reason(pod) or reason,
        restarts=sum(number(status, "restartCount") for status in started),
        last_restart=_last_end(started),
    )


def _own_reason(pod: Tree) -> str:
    """What the pod says of itself, without a look at its containers."""
    if text(conditions.get(pod, wellknown.CONDITION_POD_SCHEDULED), "reason") == _GATED:
        return _GATED
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _deletion_reason(pod: Tree) -> str:
    if not meta.is_deleting(pod):
        return ""
    if text(pod, "status", "reason") == _NODE_LOST:
        return "Unknown"
    return "" if text(pod, "status", "phase") in _TERMINAL_PHASES else "Terminating"


# --- init containers


class _Initialization(NamedTuple):
    """How far the init containers are: those that were begun, and why the last of them is in the way, if it is."""

    sidecars: frozenset[str]
    statuses: Sequence[Any]
    ready: int
    reason: str


def _initialization(pod: Tree) -> _Initialization:
    containers = items(pod, "spec", "initContainers")
    sidecars = frozenset(_name(each) for each in containers if text(each, "restartPolicy") == "Always")
    statuses = items(pod, "status", "initContainerStatuses")
    ready = 0
    for index, status in enumerate(statuses):
        if _has_succeeded(status):
            continue
        if _name(status) not in sidecars or not flag(status, "started"):
            reason = _init_reason(status) or f"{index}/{len(containers)}"
            return _Initialization(sidecars, statuses[: index + 1], ready, f"Init:{reason}")
        ready += flag(status, "ready")
    return _Initialization(sidecars, statuses, ready, "")


def _has_succeeded(status: Any) -> bool:
    terminated = part(status, "state", "terminated")
    return terminated is not None and number(terminated, "exitCode") == 0


def _init_reason(status: Any) -> str:
    terminated = part(status, "state", "terminated")
    if terminated is not None:
        return _termination_reason(terminated)
    waiting = text(status, "state", "waiting", "reason")
    return "" if waiting == "PodInitializing" else waiting


# --- the pod's containers


def _containers_reason(pod: Tree, statuses: Sequence[Any], own: str) -> str:
    """The first container's reason that has one; but one that has completed is no news while others go on."""
    reason = next(filter(None, map(_container_reason, statuses)), own)
    if reason != "Completed":
        return reason
    is_running = any(map(_is_running, statuses))
    if is_running and condition(pod, wellknown.CONDITION_READY) == "True":
        return "Running"
    failure = next((_container_reason(status) for status in statuses if _has_failed(status)), "")
    return failure or ("NotReady" if is_running else reason)


def _container_reason(status: Any) -> str:
    """Why a container does not run, if anybody says why."""
    waiting = text(status, "state", "waiting", "reason")
    terminated = part(status, "state", "terminated")
    return waiting or ("" if terminated is None else _termination_reason(terminated))


def _has_failed(status: Any) -> bool:
    is_waiting = text(status, "state", "waiting", "reason") != ""
    return not is_waiting and number(status, "state", "terminated", "exitCode") != 0


def _is_running(status: Any) -> bool:
    runs = part(status, "state", "running") is not None
    return runs and flag(status, "ready") and not _container_reason(status)


# --- one container


def _name(container: Any) -> str:
    return text(container, "name")


def _termination_reason(terminated: Any) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _last_end(statuses: Sequence[Any]) -> datetime | None:
    """When one of the containers last ended before it was restarted."""
    ends = (time(status, "lastState", "terminated", "finishedAt") for status in statuses)
    return max(filter(None, ends), default=None)

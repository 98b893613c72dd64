"""The columns of pods: how many containers are ready, the status in one word, and the restarts.

The status is the reason of the container that prevents progress, else the pod's own phase. Sidecars are init containers
that are always restarted; they run beside the pod's containers and are counted with them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import conditions, meta, wellknown
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common import ages, cells
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer


class PodStatus(Struct, frozen=True, kw_only=True):
    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: datetime | None


def _pod(pod: Tree, now: datetime) -> list[Any]:
    status = pod_status(pod)
    return [
        meta.name(pod),
        f"{status.ready}/{status.total}",
        status.reason,
        _restarts(status, now),
        ages.age(pod, now),
        _ip(pod) or "<none>",
        cells.text(pod, "spec", "nodeName") or "<none>",
        cells.text(pod, "status", "nominatedNodeName") or "<none>",
        _readiness_gates(pod),
    ]


def _restarts(status: PodStatus, now: datetime) -> str:
    if status.restarts and status.last_restart:
        return f"{status.restarts} ({ages.since(status.last_restart, now)} ago)"
    return str(status.restarts)


def _ip(pod: Tree) -> str:
    ips = cells.items(pod, "status", "podIPs")
    return cells.text(ips[0], "ip") if ips else ""


def _readiness_gates(pod: Tree) -> str:
    gates = cells.items(pod, "spec", "readinessGates")
    if not gates:
        return "<none>"
    passed_gates = [
        gate for gate in gates if cells.condition(pod, cells.text(gate, "conditionType")) == "True"
    ]
    return f"{len(passed_gates)}/{len(gates)}"


_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _conditions(pod: Tree) -> list[Tree]:
    """Return the row condition Completed of a terminated pod, which clients may omit."""
    phase = cells.text(pod, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
_GATED: Final = "SchedulingGated"
_NODE_LOST: Final = "NodeLost"


def pod_status(pod: Tree) -> PodStatus:
    init = _initialization(pod)
    main = cells.items(pod, "status", "containerStatuses")
    if init.reason and cells.condition(pod, wellknown.CONDITION_INITIALIZED) != "True":
        started, ready, reason = init.statuses, init.ready, init.reason
    else:
        started = (*(status for status in init.statuses if _name(status) in init.sidecars), *main)
        ready = init.ready + sum(map(_is_running, main))
        reason = _containers_reason(pod, main, init.reason or _own_reason(pod))
    return PodStatus(
        ready=ready,
        total=len(cells.items(pod, "spec", "containers")) + len(init.sidecars),
        reason=_deletion_reason(pod) or reason,
        restarts=sum(cells.number(status, "restartCount") for status in started),
        last_restart=_last_end(started),
    )


def _own_reason(pod: Tree) -> str:
    """Return the reason in the pod's own status, without its containers."""
    if cells.text(conditions.get(pod, wellknown.CONDITION_POD_SCHEDULED), "reason") == _GATED:
        return _GATED
    return cells.text(pod, "status", "reason") or cells.text(pod, "status", "phase")


def _deletion_reason(pod: Tree) -> str:
    if not meta.is_deleting(pod):
        return ""
    if cells.text(pod, "status", "reason") == _NODE_LOST:
        return "Unknown"
    return "" if cells.text(pod, "status", "phase") in _TERMINAL_PHASES else "Terminating"


# --- init containers


class _Initialization(NamedTuple):
    """The progress of the init containers: the statuses of started ones, and the reason of the blocking one, if any."""

    sidecars: frozenset[str]
    statuses: Sequence[Any]
    ready: int
    reason: str


def _initialization(pod: Tree) -> _Initialization:
    containers = cells.items(pod, "spec", "initContainers")
    sidecars = frozenset(_name(each) for each in containers if cells.text(each, "restartPolicy") == "Always")
    statuses = cells.items(pod, "status", "initContainerStatuses")
    ready = 0
    for index, status in enumerate(statuses):
        if _has_succeeded(status):
            continue
        if _name(status) not in sidecars or not cells.flag(status, "started"):
            reason = _init_reason(status) or f"{index}/{len(containers)}"
            return _Initialization(sidecars, statuses[: index + 1], ready, f"Init:{reason}")
        ready += cells.flag(status, "ready")
    return _Initialization(sidecars, statuses, ready, "")


def _has_succeeded(status: Any) -> bool:
    terminated = cells.part(status, "state", "terminated")
    return terminated is not None and cells.number(terminated, "exitCode") == 0


def _init_reason(status: Any) -> str:
    terminated = cells.part(status, "state", "terminated")
    if terminated is not None:
        return _termination_reason(terminated)
    waiting = cells.text(status, "state", "waiting", "reason")
    return "" if waiting == "PodInitializing" else waiting


# --- the pod's containers


def _containers_reason(pod: Tree, statuses: Sequence[Any], pod_reason: str) -> str:
    """Return the reason of the first container that has one, or `pod_reason`.

    "Completed" is replaced by the state of the other containers if they run or have failed.
    """
    reason = next(filter(None, map(_container_reason, statuses)), pod_reason)
    if reason != "Completed":
        return reason
    is_running = any(map(_is_running, statuses))
    if is_running and cells.condition(pod, wellknown.CONDITION_READY) == "True":
        return "Running"
    failure = next((_container_reason(status) for status in statuses if _has_failed(status)), "")
    return failure or ("NotReady" if is_running else reason)


def _container_reason(status: Any) -> str:
    """Return why a container does not run, if its status has a reason."""
    waiting = cells.text(status, "state", "waiting", "reason")
    terminated = cells.part(status, "state", "terminated")
    return waiting or ("" if terminated is None else _termination_reason(terminated))


def _has_failed(status: Any) -> bool:
    is_waiting = cells.text(status, "state", "waiting", "reason") != ""
    return not is_waiting and cells.number(status, "state", "terminated", "exitCode") != 0


def _is_running(status: Any) -> bool:
    runs = cells.part(status, "state", "running") is not None
    return runs and cells.flag(status, "ready") and not _container_reason(status)


# --- one container


def _name(container: Any) -> str:
    return cells.text(container, "name")


def _termination_reason(terminated: Any) -> str:
    if reason := cells.text(terminated, "reason"):
        return reason
    if signal := cells.number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{cells.number(terminated, 'exitCode')}"


def _last_end(statuses: Sequence[Any]) -> datetime | None:
    """Return when a container last terminated before a restart; None if none was restarted."""
    ends = (cells.time(status, "lastState", "terminated", "finishedAt") for status in statuses)
    return max(filter(None, ends), default=None)


PRINTER: Final = Printer(
    columns=(
        NAME,
        Column(name="Ready"),
        Column(name="Status"),
        Column(name="Restarts"),
        AGE_COLUMN,
        Column(name="IP", priority=1),
        Column(name="Node", priority=1),
        Column(name="Nominated Node", priority=1),
        Column(name="Readiness Gates", priority=1),
    ),
    cells=_pod,
    conditions=_conditions,
)

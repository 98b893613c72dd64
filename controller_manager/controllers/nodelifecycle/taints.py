"""Which taints a node has to have for its conditions: to keep new pods away, and to drive out those that are there.

Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    CONDITION_READY,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"

_OF_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    (CONDITION_READY, "False"): TAINT_NOT_READY,
    (CONDITION_READY, "Unknown"): TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): TAINT_MEMORY_PRESSURE,
    ("DiskPressure", "True"): TAINT_DISK_PRESSURE,
    ("PIDPressure", "True"): TAINT_PID_PRESSURE,
    ("NetworkUnavailable", "True"): TAINT_NETWORK_UNAVAILABLE,
}
_OURS: Final = frozenset({*_OF_CONDITION.values(), TAINT_UNSCHEDULABLE})
_DRIVES_OUT: Final[Mapping[str, str]] = {"False": TAINT_NOT_READY, "Unknown": TAINT_UNREACHABLE}

Taints = list[Mapping[str, Any]]


def taints_of(node: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return node.get("spec", {}).get("taints") or ()


def has_taint(node: ReadOnlyTree, key: str, effect: str) -> bool:
    return any(taint["key"] == key and taint["effect"] == effect for taint in taints_of(node))


def with_no_schedule_taints(node: ReadOnlyTree, now: datetime) -> Taints | None:
    """Return the node's taints with the NoSchedule taints of its conditions; None if they do not differ."""
    desired = {
        key
        for condition in conditions.of(node)
        if (key := _OF_CONDITION.get((condition["type"], condition["status"])))
    }
    if node.get("spec", {}).get("unschedulable"):
        desired.add(TAINT_UNSCHEDULABLE)
    return _exchange(node, desired, _OURS, NO_SCHEDULE, now)


def with_no_execute_taint(node: ReadOnlyTree, ready: str, now: datetime) -> Taints | None:
    """Return the node's taints with the NoExecute taint of that status of Ready; None if they do not differ."""
    desired = {_DRIVES_OUT[ready]} if ready in _DRIVES_OUT else set()
    return _exchange(node, desired, _DRIVES_OUT.values(), NO_EXECUTE, now)


def has_no_execute_taint(node: ReadOnlyTree) -> bool:
    return any(has_taint(node, key, NO_EXECUTE) for key in _DRIVES_OUT.values())


def _exchange(
    node: ReadOnlyTree, desired: set[str], ours: Iterable[str], effect: str, now: datetime
) -> Taints | None:
    owned = frozenset(ours)
    present = {
        taint["key"] for taint in taints_of(node) if taint["effect"] == effect and taint["key"] in owned
    }
    if present == desired:
        return None
    outdated = present - desired
    others = [taint for taint in taints_of(node) if taint["effect"] != effect or taint["key"] not in outdated]
    new = [{"key": key, "effect": effect, "timeAdded": format_time(now)} for key in sorted(desired - present)]
    return [*others, *new]

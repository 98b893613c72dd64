"""The taints of a node for its conditions: NoSchedule taints reject new pods, NoExecute taints evict pods."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, wellknown
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"

_TAINT_BY_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    (wellknown.CONDITION_READY, "False"): wellknown.TAINT_NOT_READY,
    (wellknown.CONDITION_READY, "Unknown"): wellknown.TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): wellknown.TAINT_MEMORY_PRESSURE,
    ("DiskPressure", "True"): wellknown.TAINT_DISK_PRESSURE,
    ("PIDPressure", "True"): wellknown.TAINT_PID_PRESSURE,
    ("NetworkUnavailable", "True"): wellknown.TAINT_NETWORK_UNAVAILABLE,
}
_OWN_TAINTS: Final = frozenset({*_TAINT_BY_CONDITION.values(), wellknown.TAINT_UNSCHEDULABLE})
_NO_EXECUTE_TAINT_BY_READY: Final[Mapping[str, str]] = {
    "False": wellknown.TAINT_NOT_READY,
    "Unknown": wellknown.TAINT_UNREACHABLE,
}

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
        if (key := _TAINT_BY_CONDITION.get((condition["type"], condition["status"])))
    }
    if node.get("spec", {}).get("unschedulable"):
        desired.add(wellknown.TAINT_UNSCHEDULABLE)
    return _swap_taints(node, desired, _OWN_TAINTS, NO_SCHEDULE, now)


def with_no_execute_taint(node: ReadOnlyTree, ready: str, now: datetime) -> Taints | None:
    """Return the node's taints with the NoExecute taint of that status of Ready; None if they do not differ."""
    desired = {_NO_EXECUTE_TAINT_BY_READY[ready]} if ready in _NO_EXECUTE_TAINT_BY_READY else set()
    return _swap_taints(node, desired, _NO_EXECUTE_TAINT_BY_READY.values(), NO_EXECUTE, now)


def has_no_execute_taint(node: ReadOnlyTree) -> bool:
    return any(has_taint(node, key, NO_EXECUTE) for key in _NO_EXECUTE_TAINT_BY_READY.values())


def _swap_taints(
    node: ReadOnlyTree, desired: set[str], own_keys: Iterable[str], effect: str, now: datetime
) -> Taints | None:
    own = frozenset(own_keys)
    present = {taint["key"] for taint in taints_of(node) if taint["effect"] == effect and taint["key"] in own}
    if present == desired:
        return None
    outdated = present - desired
    others = [taint for taint in taints_of(node) if taint["effect"] != effect or taint["key"] not in outdated]
    new = [{"key": key, "effect": effect, "timeAdded": format_time(now)} for key in sorted(desired - present)]
    return [*others, *new]

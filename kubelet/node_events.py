"""The events of a kubelet about its node, at the kubelet's start and after changes of the node.

They are written at a kubelet's rate, because thousands of nodes that start at once would delay all other writes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.events.recorder import Recorder
from mockube.client.flowcontrol import Rate, TokenBucket
from mockube.component_base.clock import Clock

from .node_objects import has_active_kubelet, is_simulated, kubelet_minor
from .step_effects import EmitEvent
from .volumes.host_paths import HOST_PATHS, host_path_problems

QUEUE_LENGTH: Final = 100_000
"""The maximum number of events that wait; further events are dropped."""
RATE: Final = Rate(qps=50.0, burst=100)

_UID_SINCE: Final = 37
"""The minor version since which a kubelet's events have the UID of its node."""
_REASONS: Final[Sequence[tuple[str, Mapping[str, str]]]] = (
    ("MemoryPressure", {"True": "NodeHasInsufficientMemory", "False": "NodeHasSufficientMemory"}),
    ("DiskPressure", {"True": "NodeHasDiskPressure", "False": "NodeHasNoDiskPressure"}),
    ("PIDPressure", {"True": "NodeHasInsufficientPID", "False": "NodeHasSufficientPID"}),
    ("Ready", {"True": "NodeReady", "False": "NodeNotReady"}),
)
"""The reasons of each condition by its status, in a kubelet's order.

The status Unknown is set by a controller, which records its own event.
"""


def node_events(old: ReadOnlyTree | None, new: ReadOnlyTree) -> list[EmitEvent]:
    """Return the events of a change; `old` is None at the kubelet's start."""
    if old is None:
        return [*_start_events(new), *_annotation_events({}, new)]
    before, now = _statuses(old), _statuses(new)
    reasons = [by_status.get(now[kind], "") for kind, by_status in _REASONS if now[kind] != before[kind]]
    if _is_unschedulable(old) != _is_unschedulable(new):
        reasons.append(_schedulable_reason(new))
    status_events = (_status_event(new, reason) for reason in reasons if reason)
    return [*_reboot_events(old, new), *status_events, *_annotation_events(old, new)]


def _start_events(node: ReadOnlyTree) -> list[EmitEvent]:
    """Return the events of a kubelet's start: they include each condition except Ready."""
    statuses = _statuses(node)
    reasons = [by_status.get(statuses[kind], "") for kind, by_status in _REASONS[:-1]]
    status_events = [_status_event(node, reason) for reason in reasons if reason]
    if _is_unschedulable(node):
        status_events.append(_status_event(node, _schedulable_reason(node)))
    enforced_message = "Updated Node Allocatable limit across pods"
    return [
        EmitEvent("Normal", "Starting", "Starting kubelet."),
        *status_events,
        EmitEvent("Normal", "NodeAllocatableEnforced", enforced_message),
    ]


def _reboot_events(old: ReadOnlyTree, new: ReadOnlyTree) -> list[EmitEvent]:
    before, now = _boot_id(old), _boot_id(new)
    if not before or not now or before == now:
        return []
    message = f"Node {meta.name(new)} has been rebooted, boot id: {now}"
    return [EmitEvent("Warning", "Rebooted", message)]


def _annotation_events(old: ReadOnlyTree, new: ReadOnlyTree) -> list[EmitEvent]:
    """Return a warning for each entry of the node's annotation that became invalid, and that is ignored therefore."""
    if meta.annotations(old).get(HOST_PATHS) == meta.annotations(new).get(HOST_PATHS):
        return []
    before = host_path_problems(old)
    problems = (problem for problem in host_path_problems(new) if problem not in before)
    return [EmitEvent("Warning", "InvalidAnnotation", problem) for problem in problems]


def _boot_id(node: ReadOnlyTree) -> str:
    return ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or ""


def _statuses(node: ReadOnlyTree) -> dict[str, str]:
    """Return the status of each condition; False for an absent condition."""
    statuses = {condition.get("type"): condition.get("status") for condition in conditions.of(node)}
    return {kind: statuses.get(kind) or "False" for kind, _ in _REASONS}


def _is_unschedulable(node: ReadOnlyTree) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _schedulable_reason(node: ReadOnlyTree) -> str:
    return "NodeNotSchedulable" if _is_unschedulable(node) else "NodeSchedulable"


def _status_event(node: ReadOnlyTree, reason: str) -> EmitEvent:
    return EmitEvent("Normal", reason, f"Node {meta.name(node)} status is now: {reason}")


class NodeEvents:
    """Records the events of all simulated nodes."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._queue: asyncio.Queue[tuple[ReadOnlyTree, EmitEvent]] = asyncio.Queue(QUEUE_LENGTH)

    def on_change(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None or not has_active_kubelet(new):
            return
        is_new = old is None or not is_simulated(old) or meta.uid(old) != meta.uid(new)
        for event in node_events(None if is_new else old, new):
            if not self._queue.full():
                self._queue.put_nowait((_reference(new), event))

    async def run(self) -> None:
        bucket = TokenBucket(RATE, self._clock)
        while True:
            about, event = await self._queue.get()
            if wait := bucket.take():
                await self._clock.sleep(wait)
            self._recorder.record_on(meta.name(about), about, event.type, event.reason, event.message)


def _reference(node: ReadOnlyTree) -> ReadOnlyTree:
    """Return what a kubelet's events are about: before 1.37 it refers to its node by name only."""
    uid = {"uid": meta.uid(node)} if kubelet_minor(node) >= _UID_SINCE else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": meta.name(node), **uid}}

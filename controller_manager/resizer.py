"""Make volumes larger, as an external resizer does, and their file systems, as the kubelet of a node does.

It does so for the drivers that `provisioner` simulates.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.quantity import Quantity, from_json
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from mockube.controller_manager.client.podview import RUNNING, PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Outcome,
    Patch,
    Plan,
    RecordEvent,
)
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.provisioner import ANSWERED, SIMULATED
from mockube.controller_manager.workloads.indexes import BY_CLAIM, claims_of_pod
from mockube.controller_manager.workloads.volumes import PROVISIONED_BY, capacity, is_bound_to, request

PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_OF_RESIZING: Final = frozenset(
    {"FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError"}
)
_AT_CONTROLLER, _FOR_NODE, _AT_NODE = (
    "ControllerResizeInProgress",
    "NodeResizePending",
    "NodeResizeInProgress",
)
_PENDING: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
_MARK: Final = ("kwok.x-k8s.io/node", "fake")


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    """What a resizer does at the driver's controller."""
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
    volume = None if claim is None else _volume(caches, claim)
    if claim is None or volume is None or meta.is_deleting(claim):
        return EMPTY_PLAN
    state = _state(claim)
    if state == _AT_CONTROLLER:
        return Plan(actions=_resizing(claim, volume, now))
    if state in (_FOR_NODE, _AT_NODE) and request(claim) <= _allocated_storage(claim):
        return EMPTY_PLAN
    if request(claim) > _status_capacity(claim):
        return _start(claim, volume, now)
    is_done = PRE_RESIZE_CAPACITY in meta.annotations(volume) and _status_capacity(claim) >= capacity(volume)
    return Plan(actions=(_annotate(volume, None),)) if is_done else EMPTY_PLAN


def _start(claim: ReadOnlyTree, volume: ReadOnlyTree, now: datetime) -> Plan:
    progress = {"type": "Resizing", "status": "True", "lastTransitionTime": format_time(now)}
    change = {
        "conditions": _with_condition(claim, progress, keeps_others=False),
        "allocatedResources": {"storage": str(request(claim))},
        "allocatedResourceStatuses": {"storage": _AT_CONTROLLER},
    }
    message = f"External resizer is resizing volume {meta.name(volume)}"
    actions = (_status(claim, change), _event(claim, "Resizing", message))
    return Plan(actions=actions, then=partial(_continuation, volume, now))


def _continuation(volume: ReadOnlyTree, now: datetime, outcome: Outcome) -> Plan | None:
    claim = next((write.answer for write in outcome.of(Patch)), None)
    if outcome.error is not None or claim is None:
        return None
    return Plan(actions=_resizing(claim, volume, now))


def _resizing(claim: ReadOnlyTree, volume: ReadOnlyTree, now: datetime) -> tuple[Action, ...]:
    """The volume is resized at once; its file system is resized by the node."""
    allocated = _allocated_storage(claim)
    actions: list[Action] = []
    if capacity(volume) < allocated:
        before = meta.annotations(volume).get(PRE_RESIZE_CAPACITY) or str(_status_capacity(claim))
        body = {"spec": {"capacity": {"storage": str(allocated)}}}
        actions.append(_annotate(volume, before, body))
    pending = {
        "type": "FileSystemResizePending",
        "status": "True",
        "lastTransitionTime": format_time(now),
        "message": _PENDING,
    }
    change = {
        "conditions": _with_condition(claim, pending, keeps_others=True),
        "allocatedResourceStatuses": {"storage": _FOR_NODE},
    }
    actions.append(_status(claim, change))
    actions.append(_event(claim, "FileSystemResizeRequired", "Require file system resize of volume on node"))
    return tuple(actions)


def reconcile_node(caches: Caches, key: Key, _: datetime) -> Plan:
    """What a kubelet does with a volume that a pod of its node uses."""
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
    volume = None if claim is None else _volume(caches, claim)
    if claim is None or volume is None or _state(claim) not in (_FOR_NODE, _AT_NODE):
        return EMPTY_PLAN
    users = caches.of(PODS).by_index(BY_CLAIM, str(key))
    pod = next((candidate for candidate in users if _is_at_simulated_node(caches, candidate)), None)
    if pod is None:
        return EMPTY_PLAN
    finish = partial(_finish, pod, volume)
    if _state(claim) == _AT_NODE:
        return finish(claim)
    change = {"allocatedResourceStatuses": {"storage": _AT_NODE}}
    return Plan(actions=(_status(claim, change),), then=lambda outcome: _after_start(finish, outcome))


def _after_start(finish: Any, outcome: Outcome) -> Plan | None:
    claim = next((write.answer for write in outcome.of(Patch)), None)
    return None if outcome.error is not None or claim is None else finish(claim)


def _finish(pod: PodView, volume: ReadOnlyTree, claim: ReadOnlyTree) -> Plan:
    message = f'MountVolume.NodeExpandVolume succeeded for volume "{meta.name(volume)}" {pod.node}'
    change = {
        "capacity": {"storage": str(capacity(volume))},
        "conditions": [
            condition for condition in conditions.of(claim) if condition["type"] not in _OF_RESIZING
        ]
        or None,
        "allocatedResourceStatuses": None,
    }
    return Plan(
        actions=(
            *(_event(about, "FileSystemResizeSuccessful", message) for about in (pod.object, claim)),
            _status(claim, change),
        )
    )


def _is_at_simulated_node(caches: Caches, pod: PodView) -> bool:
    if pod.phase != RUNNING or pod.deleting:
        return False
    node = caches.of(NODES).get("", pod.node)
    return node is not None and meta.annotations(node).get(_MARK[0]) == _MARK[1]


def _volume(caches: Caches, claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """The volume of a bound claim, if it is one of those that are simulated."""
    volume = caches.of(PERSISTENT_VOLUMES).get("", claim["spec"].get("volumeName") or "")
    if volume is None or not is_bound_to(volume, claim):
        return None
    driver = (volume["spec"].get("csi") or {}).get("driver")
    is_simulated = driver in ANSWERED or meta.annotations(volume).get(PROVISIONED_BY) in ANSWERED
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    return volume if is_simulated and is_bound else None


def _state(claim: ReadOnlyTree) -> str:
    resize_status: str = ((claim.get("status") or {}).get("allocatedResourceStatuses") or {}).get(
        "storage"
    ) or ""
    return resize_status


def _allocated_storage(claim: ReadOnlyTree) -> Quantity:
    return from_json(((claim.get("status") or {}).get("allocatedResources") or {}).get("storage"))


def _status_capacity(claim: ReadOnlyTree) -> Quantity:
    return from_json(((claim.get("status") or {}).get("capacity") or {}).get("storage"))


def _with_condition(
    claim: ReadOnlyTree, condition: Mapping[str, Any], *, keeps_others: bool
) -> list[ReadOnlyTree]:
    """Replace the condition. `keeps_others` is about other conditions of resizing; unrelated ones always stay."""
    others = [
        other
        for other in conditions.of(claim)
        if other["type"] not in _OF_RESIZING or (keeps_others and other["type"] != condition["type"])
    ]
    return [*others, condition]


def _status(claim: ReadOnlyTree, change: Mapping[str, Any]) -> Patch:
    body = {"metadata": {"resourceVersion": meta.resource_version(claim)}, "status": change}
    return Patch(resource=PERSISTENT_VOLUME_CLAIMS, key=Key.of(claim), body=body, subresource="status")


def _annotate(volume: ReadOnlyTree, before: str | None, body: Mapping[str, Any] | None = None) -> Patch:
    """`before` is what the claim had, until its file system has grown; None takes it out."""
    patch_body = {"metadata": {"annotations": {PRE_RESIZE_CAPACITY: before}}, **(body or {})}
    return Patch(resource=PERSISTENT_VOLUMES, key=Key("", meta.name(volume)), body=patch_body)


def _event(about: ReadOnlyTree, reason: str, message: str) -> RecordEvent:
    return RecordEvent(about=about, type="Normal", reason=reason, message=message)


def _of_claim(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or not _is_unfinished(change.new) else (Key.of(change.new),)


def _is_unfinished(claim: ReadOnlyTree) -> bool:
    return bool(_state(claim)) or request(claim) > _status_capacity(claim)


def _of_claim_or_size(_: Caches, change: Change) -> Iterable[Key]:
    """Also a claim whose capacity has just grown: its volume's annotation is to be removed."""
    if change.new is None:
        return ()
    has_more = change.old is None or _status_capacity(change.old) != _status_capacity(change.new)
    return (Key.of(change.new),) if has_more or _is_unfinished(change.new) else ()


def _of_pod(_: Caches, change: Change) -> Iterable[Key]:
    """One that has begun to run."""
    old, new = change
    if new is None or new.phase != RUNNING or (old is not None and old.phase == RUNNING):
        return ()
    return map(Key.parse, claims_of_pod(new))


RESIZER: Final = Controller(
    name="simulated-resizer",
    queue="simulated_resizer",
    service_account="",
    event_component=f"external-resizer {SIMULATED}",
    watches=(
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claim_or_size),
        Watch(resource=PERSISTENT_VOLUMES),
    ),
    reconcile=reconcile,
    workers=5,
)

NODE_RESIZER: Final = Controller(
    name="simulated-file-system-resizer",
    queue="simulated_file_system_resizer",
    service_account="",
    event_component="kubelet",
    watches=(
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claim),
        Watch(resource=PERSISTENT_VOLUMES),
        Watch(resource=PODS, keys=_of_pod),
        Watch(resource=NODES),
    ),
    indexes={PODS: {BY_CLAIM: claims_of_pod}},
    reconcile=reconcile_node,
    workers=5,
)

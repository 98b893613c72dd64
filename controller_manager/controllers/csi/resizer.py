"""Expand volumes, as an external resizer does, and their file systems, as a kubelet does.

Only volumes of the drivers that `provisioner` simulates are expanded.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.quantity import Quantity, from_json
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers import volumes
from mockube.client.component_helpers.indexes import BY_CLAIM, claims_of_pod
from mockube.client.podview import RUNNING, PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Patch,
    Plan,
    PlanResult,
    RecordEvent,
)
from mockube.controller_manager.control.controller import Controller, Watch

_RESIZE_CONDITIONS: Final = frozenset(
    {"FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError"}
)
_CONTROLLER_RESIZE_IN_PROGRESS, _NODE_RESIZE_PENDING, _NODE_RESIZE_IN_PROGRESS = (
    "ControllerResizeInProgress",
    "NodeResizePending",
    "NodeResizeInProgress",
)
_PENDING_MESSAGE: Final = (
    "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
)
_SIMULATED_NODE_ANNOTATION: Final = ("kwok.x-k8s.io/node", "fake")


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    """Reconcile a claim as an external resizer: expand its volume, and leave the file system to the node."""
    claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*key)
    volume = None if claim is None else _volume(caches, claim)
    if claim is None or volume is None or meta.is_deleting(claim):
        return EMPTY_PLAN
    state = _resize_status(claim)
    if state == _CONTROLLER_RESIZE_IN_PROGRESS:
        return Plan(actions=_resize_actions(claim, volume, now))
    requested, present = volumes.request(claim), volumes.status_capacity(claim)
    is_on_node = state in (_NODE_RESIZE_PENDING, _NODE_RESIZE_IN_PROGRESS)
    if is_on_node and requested <= _allocated_storage(claim):
        return EMPTY_PLAN
    if requested > present:
        return _start_resize(claim, volume, now)
    is_annotated = volumes.PRE_RESIZE_CAPACITY in meta.annotations(volume)
    is_done = is_annotated and present >= volumes.capacity(volume)
    return Plan(actions=(_annotation_patch(volume, None),)) if is_done else EMPTY_PLAN


def _start_resize(claim: ReadOnlyTree, volume: ReadOnlyTree, now: datetime) -> Plan:
    progress = {"type": "Resizing", "status": "True", "lastTransitionTime": format_time(now)}
    change = {
        "conditions": _with_condition(claim, progress, keeps_others=False),
        "allocatedResources": {"storage": str(volumes.request(claim))},
        "allocatedResourceStatuses": {"storage": _CONTROLLER_RESIZE_IN_PROGRESS},
    }
    message = f"External resizer is resizing volume {meta.name(volume)}"
    actions = (_status_patch(claim, change), _event(claim, "Resizing", message))
    return Plan(actions=actions, then=partial(_plan_after_start, volume, now))


def _plan_after_start(volume: ReadOnlyTree, now: datetime, outcome: PlanResult) -> Plan | None:
    claim = next((write.response for write in outcome.of(Patch)), None)
    if outcome.error is not None or claim is None:
        return None
    return Plan(actions=_resize_actions(claim, volume, now))


def _resize_actions(claim: ReadOnlyTree, volume: ReadOnlyTree, now: datetime) -> tuple[Action, ...]:
    """Return the actions that expand the volume and mark its file system for expansion by the node."""
    allocated = _allocated_storage(claim)
    actions: list[Action] = []
    if volumes.capacity(volume) < allocated:
        old_capacity = meta.annotations(volume).get(volumes.PRE_RESIZE_CAPACITY) or str(
            volumes.status_capacity(claim)
        )
        body = {"spec": {"capacity": {"storage": str(allocated)}}}
        actions.append(_annotation_patch(volume, old_capacity, body))
    pending = {
        "type": "FileSystemResizePending",
        "status": "True",
        "lastTransitionTime": format_time(now),
        "message": _PENDING_MESSAGE,
    }
    change = {
        "conditions": _with_condition(claim, pending, keeps_others=True),
        "allocatedResourceStatuses": {"storage": _NODE_RESIZE_PENDING},
    }
    actions.append(_status_patch(claim, change))
    actions.append(_event(claim, "FileSystemResizeRequired", "Require file system resize of volume on node"))
    return tuple(actions)


def reconcile_node(caches: Caches, key: Key, _: datetime) -> Plan:
    """Reconcile a claim as a kubelet: expand the file system of a volume that a running pod uses."""
    claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*key)
    volume = None if claim is None else _volume(caches, claim)
    if (
        claim is None
        or volume is None
        or _resize_status(claim) not in (_NODE_RESIZE_PENDING, _NODE_RESIZE_IN_PROGRESS)
    ):
        return EMPTY_PLAN
    users = caches.of(kinds.PODS).by_index(BY_CLAIM, str(key))
    pod = next((candidate for candidate in users if _runs_on_simulated_node(caches, candidate)), None)
    if pod is None:
        return EMPTY_PLAN
    finish = partial(_finish_file_system_resize, pod, volume)
    if _resize_status(claim) == _NODE_RESIZE_IN_PROGRESS:
        return finish(claim)
    change = {"allocatedResourceStatuses": {"storage": _NODE_RESIZE_IN_PROGRESS}}
    return Plan(
        actions=(_status_patch(claim, change),), then=lambda outcome: _plan_after_node_start(finish, outcome)
    )


def _plan_after_node_start(finish: Any, outcome: PlanResult) -> Plan | None:
    claim = next((write.response for write in outcome.of(Patch)), None)
    return None if outcome.error is not None or claim is None else finish(claim)


def _finish_file_system_resize(pod: PodView, volume: ReadOnlyTree, claim: ReadOnlyTree) -> Plan:
    message = f'MountVolume.NodeExpandVolume succeeded for volume "{meta.name(volume)}" {pod.node}'
    change = {
        "capacity": {"storage": str(volumes.capacity(volume))},
        "conditions": [
            condition for condition in conditions.of(claim) if condition["type"] not in _RESIZE_CONDITIONS
        ]
        or None,
        "allocatedResourceStatuses": None,
    }
    return Plan(
        actions=(
            *(_event(about, "FileSystemResizeSuccessful", message) for about in (pod.object, claim)),
            _status_patch(claim, change),
        )
    )


def _runs_on_simulated_node(caches: Caches, pod: PodView) -> bool:
    if pod.phase != RUNNING or pod.deleting:
        return False
    node = caches.of(kinds.NODES).get("", pod.node)
    return (
        node is not None
        and meta.annotations(node).get(_SIMULATED_NODE_ANNOTATION[0]) == _SIMULATED_NODE_ANNOTATION[1]
    )


def _volume(caches: Caches, claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the volume of a bound claim; None if its driver is not simulated."""
    volume = caches.of(kinds.PERSISTENT_VOLUMES).get("", claim["spec"].get("volumeName") or "")
    if volume is None or not volumes.is_bound_to(volume, claim):
        return None
    driver = (volume["spec"].get("csi") or {}).get("driver")
    is_simulated = (
        driver in volumes.SIMULATED_PROVISIONERS
        or meta.annotations(volume).get(volumes.PROVISIONED_BY) in volumes.SIMULATED_PROVISIONERS
    )
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    return volume if is_simulated and is_bound else None


def _resize_status(claim: ReadOnlyTree) -> str:
    resize_status: str = ((claim.get("status") or {}).get("allocatedResourceStatuses") or {}).get(
        "storage"
    ) or ""
    return resize_status


def _allocated_storage(claim: ReadOnlyTree) -> Quantity:
    return from_json(((claim.get("status") or {}).get("allocatedResources") or {}).get("storage"))


def _with_condition(
    claim: ReadOnlyTree, condition: Mapping[str, Any], *, keeps_others: bool
) -> list[ReadOnlyTree]:
    """Return the conditions with this one set. Other resize conditions stay only with `keeps_others`."""
    others = [
        other
        for other in conditions.of(claim)
        if other["type"] not in _RESIZE_CONDITIONS or (keeps_others and other["type"] != condition["type"])
    ]
    return [*others, condition]


def _status_patch(claim: ReadOnlyTree, change: Mapping[str, Any]) -> Patch:
    body = {"metadata": {"resourceVersion": meta.resource_version(claim)}, "status": change}
    return Patch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, key=Key.of(claim), body=body, subresource="status")


def _annotation_patch(
    volume: ReadOnlyTree, old_capacity: str | None, body: Mapping[str, Any] | None = None
) -> Patch:
    """Return the patch that sets the annotation with the capacity before the resize; None removes it."""
    patch_body = {"metadata": {"annotations": {volumes.PRE_RESIZE_CAPACITY: old_capacity}}, **(body or {})}
    return Patch(resource=kinds.PERSISTENT_VOLUMES, key=Key("", meta.name(volume)), body=patch_body)


def _event(about: ReadOnlyTree, reason: str, message: str) -> RecordEvent:
    return RecordEvent(about=about, type="Normal", reason=reason, message=message)


def _unfinished_claim(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or not _is_unfinished(change.new) else (Key.of(change.new),)


def _is_unfinished(claim: ReadOnlyTree) -> bool:
    return bool(_resize_status(claim)) or volumes.request(claim) > volumes.status_capacity(claim)


def _unfinished_or_grown_claim(_: Caches, change: Change) -> Iterable[Key]:
    """Map a change of a claim to its key if its resize is unfinished, or its capacity changed.

    After the latter the annotation of its volume is removed.
    """
    old, new = change
    if new is None:
        return ()
    has_new_capacity = old is None or volumes.status_capacity(old) != volumes.status_capacity(new)
    return (Key.of(new),) if has_new_capacity or _is_unfinished(new) else ()


def _claims_of_started_pod(_: Caches, change: Change) -> Iterable[Key]:
    """Map a pod that has started to run to the keys of its claims."""
    old, new = change
    if new is None or new.phase != RUNNING or (old is not None and old.phase == RUNNING):
        return ()
    return map(Key.parse, claims_of_pod(new))


RESIZER: Final = Controller(
    name="simulated-resizer",
    queue="simulated_resizer",
    service_account="",
    event_component=f"external-resizer {volumes.SIMULATED_PROVISIONER}",
    watches=(
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=_unfinished_or_grown_claim),
        Watch(resource=kinds.PERSISTENT_VOLUMES),
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
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=_unfinished_claim),
        Watch(resource=kinds.PERSISTENT_VOLUMES),
        Watch(resource=kinds.PODS, keys=_claims_of_started_pod),
        Watch(resource=kinds.NODES),
    ),
    indexes={kinds.PODS: {BY_CLAIM: claims_of_pod}},
    reconcile=reconcile_node,
    workers=5,
)

"""The attach/detach controller: it attaches volumes to the nodes whose pods need them. Its keys are nodes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers import indexes
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    Plan,
    RecordEvent,
    Remember,
)
from mockube.controller_manager.control.controller import Controller, Watch

from .volumes import (
    BY_ATTACHED_VOLUME,
    BY_NODE_WITH_CLAIMS,
    NeededVolume,
    attachment,
    is_attached,
    is_own,
    needed_volumes,
    nodes_of_claim_users,
    own_volume,
    unique_name,
    volume_of_attachment,
)

MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
ReportedConflicts = frozenset[str]
"""The names of attachments that another node blocks, and for which an Event was recorded."""


_REPORTS_WAITING: Final = "1.37"
"""The first minor release that reports a volume that is attached to another node as waiting, not as an error."""
_WAITING: Final = (
    "Waiting for detach",
    "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node",
)
_MULTI_ATTACH: Final = (
    "Multi-Attach error",
    "Volume is already exclusively attached to one node and can't be attached to another",
)


def reconcile(caches: Caches, key: Key, _: datetime, memory: object = None) -> Plan:
    node = caches.of(kinds.NODES).get(*key)
    if node is not None and meta.annotations(node).get(MANAGED) != "true":
        return EMPTY_PLAN
    needed = {} if node is None else needed_volumes(caches, key.name)
    attachments = caches.of(kinds.VOLUME_ATTACHMENTS).by_index(indexes.BY_ATTACHED_NODE, key.name)
    present = {meta.name(attachment): attachment for attachment in attachments}
    missing = {name: volume for name, volume in needed.items() if name not in present}
    users_on_other_nodes = {
        name: _users_on_other_nodes(caches, volume, key.name) for name, volume in missing.items()
    }
    blocked = {name: users for name, users in users_on_other_nodes.items() if users is not None}
    known_conflicts: ReportedConflicts = memory if isinstance(memory, frozenset) else frozenset()
    new_conflicts = [name for name in blocked if name not in known_conflicts]
    actions: list[Action] = [
        event
        for name in new_conflicts
        for event in _conflict_events(needed[name], blocked[name], caches.gates)
    ]
    if known_conflicts != frozenset(blocked):
        actions.append(Remember(frozenset(blocked) or None))
    actions += [_creation(volume, key.name) for name, volume in missing.items() if name not in blocked]
    return Plan(actions=(*actions, *_changes(caches, node, needed, present)))


def _creation(volume: NeededVolume, node: str) -> Create:
    failed = f'AttachVolume.Attach failed for volume "{volume.name}" : {{error}}'
    event = EventTemplate(about=volume.pods[0].object, on_failure=("FailedAttachVolume", failed))
    return Create(resource=kinds.VOLUME_ATTACHMENTS, bodies=(attachment(volume, node),), event=event)


def _users_on_other_nodes(caches: Caches, volume: NeededVolume, node: str) -> list[PodView] | None:
    """Return the pods that use an exclusive volume on another node; None if it is not attached to another node."""
    others = [
        attachment
        for attachment in caches.of(kinds.VOLUME_ATTACHMENTS).by_index(BY_ATTACHED_VOLUME, volume.name)
        if attachment["spec"]["nodeName"] != node
    ]
    if not volume.is_exclusive or not others:
        return None
    nodes = {attachment["spec"]["nodeName"] for attachment in others}
    reference = volume.volume["spec"]["claimRef"]
    pods = caches.of(kinds.PODS).by_index(indexes.BY_CLAIM, f"{reference['namespace']}/{reference['name']}")
    return sorted(
        (pod for pod in pods if pod.node in nodes and not pod.is_terminal), key=lambda pod: pod.key.name
    )


def _conflict_events(
    volume: NeededVolume, users: list[PodView], gates: FeatureGates
) -> Iterator[RecordEvent]:
    is_older = gates.is_before(_REPORTS_WAITING)
    prefix, problem = _MULTI_ATTACH if is_older else _WAITING
    if users:
        problem = f"Volume is already used by pod(s) {', '.join(pod.key.name for pod in users)}"
    for pod in volume.pods:
        message = f'{prefix} for volume "{volume.name}" {problem}'
        yield RecordEvent(about=pod.object, type="Warning", reason="FailedAttachVolume", message=message)


def _changes(
    caches: Caches,
    node: ReadOnlyTree | None,
    needed: Mapping[str, NeededVolume],
    present: Mapping[str, ReadOnlyTree],
) -> Iterator[Action]:
    """Yield actions that write the node's list of attached volumes, record Events of new ones, and detach unused ones."""
    status = (node or {}).get("status") or {}
    reported_names = [entry["name"] for entry in status.get("volumesAttached") or ()]
    in_use = {*(status.get("volumesInUse") or ())}
    attached, to_detach = [], []
    for name, volume_attachment in present.items():
        volume = own_volume(caches, volume_attachment)
        volume_name = "" if volume is None else unique_name(volume)
        if name in needed or volume_name in in_use:
            if is_attached(volume_attachment):
                attached.append(volume_name)
            if is_attached(volume_attachment) and volume_name not in reported_names and name in needed:
                yield from _success_events(needed[name])
        elif is_own(caches, volume_attachment) and not meta.is_deleting(volume_attachment):
            to_detach.append(ObjectRef.of(volume_attachment))
    if node is not None and {*attached} != {*reported_names}:
        entries = [{"devicePath": "", "name": volume_name} for volume_name in attached]
        body = {"status": {"volumesAttached": entries or None}}
        yield Patch(resource=kinds.NODES, key=Key.of(node), body=body, subresource="status")
    if to_detach:
        yield Delete(resource=kinds.VOLUME_ATTACHMENTS, objects=tuple(to_detach))


def _success_events(volume: NeededVolume) -> Iterator[RecordEvent]:
    for pod in volume.pods:
        message = f'AttachVolume.Attach succeeded for volume "{volume.name}" '
        yield RecordEvent(about=pod.object, type="Normal", reason="SuccessfulAttachVolume", message=message)


# --- the keys that a change affects


def _nodes_of_pod(_: Caches, change: Change) -> Iterable[Key]:
    old, new = change
    node_names = {pod.node for pod in (old, new) if pod is not None and pod.node}
    if not any(True for _claim in indexes.claims_of_pod(change.last_known)):
        return ()
    is_same = (
        old is not None
        and new is not None
        and (old.node, old.is_terminal, old.uid) == (new.node, new.is_terminal, new.uid)
    )
    return () if is_same else [Key("", node) for node in sorted(node_names)]


def _node_key(_: Caches, change: Change) -> Iterable[Key]:
    """Return the key of a node if a relevant field has changed: heartbeats are ignored."""
    key = Key("", meta.name(change.last_known))
    if change.old is None or change.new is None:
        return (key,)
    return () if _relevant_fields(change.old) == _relevant_fields(change.new) else (key,)


def _relevant_fields(node: ReadOnlyTree) -> tuple[Any, ...]:
    status = node.get("status") or {}
    return meta.annotations(node).get(MANAGED), status.get("volumesAttached"), status.get("volumesInUse")


def _nodes_of_attachment(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the node of an attachment; after its deletion also the nodes that wait for its volume."""
    latest = change.last_known
    yield Key("", latest["spec"].get("nodeName") or "")
    if change.new is None:
        name = next(volume_of_attachment(latest))
        volume = caches.of(kinds.PERSISTENT_VOLUMES).get("", name) if name else None
        if volume is not None:
            yield from _nodes_of_users(caches, volume["spec"].get("claimRef"))


def _nodes_of_volume(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the nodes of a new volume's users: the volume may enter its cache after the pods."""
    if change.old is not None or change.new is None:
        return ()
    return _nodes_of_users(caches, change.new["spec"].get("claimRef"))


def _nodes_of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    if change.new is None or (
        change.old is not None
        and change.old["spec"].get("volumeName") == change.new["spec"].get("volumeName")
    ):
        return ()
    return _nodes_of_users(caches, {"namespace": meta.namespace(change.new), "name": meta.name(change.new)})


def _nodes_of_users(caches: Caches, claim: ReadOnlyTree | None) -> Iterator[Key]:
    if claim is not None:
        for pod in caches.of(kinds.PODS).by_index(indexes.BY_CLAIM, f"{claim['namespace']}/{claim['name']}"):
            if pod.node:
                yield Key("", pod.node)


ATTACH_DETACH: Final = Controller(
    name="persistentvolume-attach-detach-controller",
    queue="attachdetach",
    service_account="attachdetach-controller",
    watches=(
        Watch(resource=kinds.NODES, keys=_node_key),
        Watch(resource=kinds.PODS, keys=_nodes_of_pod),
        Watch(resource=kinds.VOLUME_ATTACHMENTS, keys=_nodes_of_attachment),
        Watch(resource=kinds.PERSISTENT_VOLUMES, keys=_nodes_of_volume),
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=_nodes_of_claim),
        Watch(resource=kinds.CSI_DRIVERS),
    ),
    indexes={
        kinds.PODS: {indexes.BY_CLAIM: indexes.claims_of_pod, BY_NODE_WITH_CLAIMS: nodes_of_claim_users},
        kinds.VOLUME_ATTACHMENTS: {
            indexes.BY_ATTACHED_NODE: indexes.node_of_attachment,
            BY_ATTACHED_VOLUME: volume_of_attachment,
        },
    },
    reconcile=reconcile,
    has_memory=True,
    workers=10,
)

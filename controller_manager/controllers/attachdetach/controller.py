"""Attach volumes to the nodes whose pods need them, and detach them after the last of these: node by node."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
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
from mockube.controller_manager.controllers.attachdetach.volumes import (
    BY_ATTACHED_NODE,
    BY_ATTACHED_VOLUME,
    BY_NODE_WITH_CLAIMS,
    NeededVolume,
    attachment,
    is_attached,
    is_own,
    needed_volumes,
    node_of_attachment,
    nodes_of_claim_users,
    own_volume,
    unique_name,
    volume_of_attachment,
)
from mockube.controller_manager.workloads.indexes import BY_CLAIM, claims_of_pod

MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
Reported = frozenset[str]
"""The attachments that another node blocks, for which an Event was recorded."""


def reconcile(caches: Caches, key: Key, _: datetime, reported: object = None) -> Plan:
    node = caches.of(NODES).get(*key)
    if node is not None and meta.annotations(node).get(MANAGED) != "true":
        return EMPTY_PLAN
    needed = {} if node is None else needed_volumes(caches, key.name)
    attachments = caches.of(VOLUME_ATTACHMENTS).by_index(BY_ATTACHED_NODE, key.name)
    present = {meta.name(attachment): attachment for attachment in attachments}
    missing = {name: volume for name, volume in needed.items() if name not in present}
    in_the_way = {name: _users_elsewhere(caches, volume, key.name) for name, volume in missing.items()}
    blocked = {name: users for name, users in in_the_way.items() if users is not None}
    known_conflicts: Reported = reported if isinstance(reported, frozenset) else frozenset()
    news = [name for name in blocked if name not in known_conflicts]
    actions: list[Action] = [event for name in news for event in _conflicts(needed[name], blocked[name])]
    if known_conflicts != frozenset(blocked):
        actions.append(Remember(frozenset(blocked) or None))
    actions += [_creation(volume, key.name) for name, volume in missing.items() if name not in blocked]
    return Plan(actions=(*actions, *_changes(caches, node, needed, present)))


def _creation(volume: NeededVolume, node: str) -> Create:
    failed = f'AttachVolume.Attach failed for volume "{volume.name}" : {{error}}'
    event = EventTemplate(about=volume.pods[0].object, failed=("FailedAttachVolume", failed))
    return Create(resource=VOLUME_ATTACHMENTS, bodies=(attachment(volume, node),), event=event)


def _users_elsewhere(caches: Caches, volume: NeededVolume, node: str) -> list[PodView] | None:
    """The pods that keep a volume on another node, if it is attached there and may be in one place only."""
    others = [
        attachment
        for attachment in caches.of(VOLUME_ATTACHMENTS).by_index(BY_ATTACHED_VOLUME, volume.name)
        if attachment["spec"]["nodeName"] != node
    ]
    if not volume.is_exclusive or not others:
        return None
    nodes = {attachment["spec"]["nodeName"] for attachment in others}
    reference = volume.volume["spec"]["claimRef"]
    pods = caches.of(PODS).by_index(BY_CLAIM, f"{reference['namespace']}/{reference['name']}")
    return sorted(
        (pod for pod in pods if pod.node in nodes and not pod.is_terminal), key=lambda pod: pod.key.name
    )


def _conflicts(volume: NeededVolume, users: list[PodView]) -> Iterator[RecordEvent]:
    problem = "Volume is already exclusively attached to one node and can't be attached to another"
    if users:
        problem = f"Volume is already used by pod(s) {', '.join(pod.key.name for pod in users)}"
    for pod in volume.pods:
        message = f'Multi-Attach error for volume "{volume.name}" {problem}'
        yield RecordEvent(about=pod.object, type="Warning", reason="FailedAttachVolume", message=message)


def _changes(
    caches: Caches,
    node: ReadOnlyTree | None,
    needed: Mapping[str, NeededVolume],
    present: Mapping[str, ReadOnlyTree],
) -> Iterator[Action]:
    """Write the node's list of attached volumes, record Events of new ones, and detach unused ones."""
    status = (node or {}).get("status") or {}
    reported_names = [entry["name"] for entry in status.get("volumesAttached") or ()]
    in_use = {*(status.get("volumesInUse") or ())}
    attached, superfluous = [], []
    for name, volume_attachment in present.items():
        volume = own_volume(caches, volume_attachment)
        place = "" if volume is None else unique_name(volume)
        if name in needed or place in in_use:
            if is_attached(volume_attachment):
                attached.append(place)
            if is_attached(volume_attachment) and place not in reported_names and name in needed:
                yield from _successes(needed[name])
        elif is_own(caches, volume_attachment) and not meta.is_deleting(volume_attachment):
            superfluous.append(ObjectRef.of(volume_attachment))
    if node is not None and {*attached} != {*reported_names}:
        places = [{"devicePath": "", "name": place} for place in attached]
        body = {"status": {"volumesAttached": places or None}}
        yield Patch(resource=NODES, key=Key.of(node), body=body, subresource="status")
    if superfluous:
        yield Delete(resource=VOLUME_ATTACHMENTS, objects=tuple(superfluous))


def _successes(volume: NeededVolume) -> Iterator[RecordEvent]:
    for pod in volume.pods:
        message = f'AttachVolume.Attach succeeded for volume "{volume.name}" '
        yield RecordEvent(about=pod.object, type="Normal", reason="SuccessfulAttachVolume", message=message)


# --- the keys that a change affects


def _of_pod(_: Caches, change: Change) -> Iterable[Key]:
    old, new = change
    concerned = {pod.node for pod in (old, new) if pod is not None and pod.node}
    if not concerned or not any(True for _claim in claims_of_pod(change.last_known)):
        return ()
    is_same = (
        old is not None
        and new is not None
        and (old.node, old.is_terminal, old.uid) == (new.node, new.is_terminal, new.uid)
    )
    return () if is_same else [Key("", node) for node in sorted(concerned)]


def _of_node(_: Caches, change: Change) -> Iterable[Key]:
    """Heartbeats change nothing here."""
    key = Key("", meta.name(change.last_known))
    if change.old is None or change.new is None:
        return (key,)
    return () if _facts(change.old) == _facts(change.new) else (key,)


def _facts(node: ReadOnlyTree) -> tuple[Any, ...]:
    status = node.get("status") or {}
    return meta.annotations(node).get(MANAGED), status.get("volumesAttached"), status.get("volumesInUse")


def _of_attachment(caches: Caches, change: Change) -> Iterable[Key]:
    """Its node; after its deletion also the nodes that wait for its volume."""
    latest = change.last_known
    yield Key("", latest["spec"].get("nodeName") or "")
    if change.new is None:
        name = next(volume_of_attachment(latest))
        volume = caches.of(PERSISTENT_VOLUMES).get("", name) if name else None
        if volume is not None:
            yield from _users_of(caches, volume["spec"].get("claimRef"))


def _of_volume(caches: Caches, change: Change) -> Iterable[Key]:
    """A volume may be seen after the pods that use it."""
    if change.old is not None or change.new is None:
        return ()
    return _users_of(caches, change.new["spec"].get("claimRef"))


def _of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    if change.new is None or (
        change.old is not None
        and change.old["spec"].get("volumeName") == change.new["spec"].get("volumeName")
    ):
        return ()
    return _users_of(caches, {"namespace": meta.namespace(change.new), "name": meta.name(change.new)})


def _users_of(caches: Caches, claim: ReadOnlyTree | None) -> Iterator[Key]:
    if claim is not None:
        for pod in caches.of(PODS).by_index(BY_CLAIM, f"{claim['namespace']}/{claim['name']}"):
            if pod.node:
                yield Key("", pod.node)


ATTACH_DETACH: Final = Controller(
    name="persistentvolume-attach-detach-controller",
    queue="attachdetach",
    service_account="attachdetach-controller",
    watches=(
        Watch(resource=NODES, keys=_of_node),
        Watch(resource=PODS, keys=_of_pod),
        Watch(resource=VOLUME_ATTACHMENTS, keys=_of_attachment),
        Watch(resource=PERSISTENT_VOLUMES, keys=_of_volume),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claim),
        Watch(resource=CSI_DRIVERS),
    ),
    indexes={
        PODS: {BY_CLAIM: claims_of_pod, BY_NODE_WITH_CLAIMS: nodes_of_claim_users},
        VOLUME_ATTACHMENTS: {
            BY_ATTACHED_NODE: node_of_attachment,
            BY_ATTACHED_VOLUME: volume_of_attachment,
        },
    },
    reconcile=reconcile,
    remembers=True,
    workers=10,
)

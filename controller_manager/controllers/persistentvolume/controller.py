"""The controller that binds claims and volumes: one queue for both, since each step of one is the next of the other."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.controllers.persistentvolume import binding, claims, volumes
from mockube.controller_manager.controllers.persistentvolume.binding import is_completed
from mockube.controller_manager.workloads.indexes import claims_of_pod
from mockube.controller_manager.workloads.volumes import class_name, has_storage_class_name


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    """A key with a namespace is a claim's, one without is a volume's."""
    if key.namespace:
        claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
        return EMPTY_PLAN if claim is None else claims.reconcile(caches, claim)
    volume = caches.of(PERSISTENT_VOLUMES).get(*key)
    return EMPTY_PLAN if volume is None else volumes.reconcile(caches, volume)


# --- what a change concerns


def _of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    claim: ReadOnlyTree = change.last_known
    yield Key.of(claim)
    yield from map(Key.of, binding.volumes_naming(caches, claim))


def _of_volume(caches: Caches, change: Change) -> Iterable[Key]:
    """Itself, the claims that it names or named, those that name it; a free one all that wait for one of its class."""
    for volume in (tree for tree in change if tree is not None):
        yield Key.of(volume)
        ref = volume["spec"].get("claimRef")
        if ref is not None:
            yield Key(ref["namespace"], ref["name"])
    latest: ReadOnlyTree = change.last_known
    if latest["spec"].get("claimRef") is None:
        yield from map(Key.of, binding.unbound_claims(caches, class_name(latest)))


def _of_class(caches: Caches, change: Change) -> Iterable[Key]:
    """The claims that wait for a volume of it, and those that would take the default."""
    yield from map(Key.of, binding.unbound_claims(caches, meta.name(change.last_known)))
    yield from (
        Key.of(claim) for claim in binding.unbound_claims(caches, "") if not has_storage_class_name(claim)
    )


def _of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """A new consumer of a claim that waits for one: the claim's Event now waits for the pod to be scheduled."""
    pod: PodView | None = change.new
    if pod is None or change.old is not None or pod.node:
        return
    for name in claims_of_pod(pod):
        claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*Key.parse(name))
        if claim is not None and not is_completed(claim):
            yield Key.of(claim)


PERSISTENT_VOLUME_BINDER: Final = Controller(
    name="persistentvolume-binder-controller",
    queue="persistentvolume_binder",
    service_account="persistent-volume-binder",
    event_component="persistentvolume-controller",
    watches=(
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claim),
        Watch(resource=PERSISTENT_VOLUMES, keys=_of_volume),
        Watch(resource=STORAGE_CLASSES, keys=_of_class),
        Watch(resource=PODS, keys=_of_pod),
    ),
    indexes=binding.INDEXES,
    reconcile=reconcile,
    workers=1,
)

"""The PersistentVolume controller: one queue has the keys of claims and of volumes, which depend on each other."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.indexes import claims_of_pod
from mockube.client.component_helpers.volumes import has_storage_class_name
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan
from mockube.controller_manager.control.controller import Controller, Watch

from . import binding, claims, volumes
from .binding import is_bind_completed


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    """Reconcile the claim of a key with a namespace, or the volume of a key without."""
    if key.namespace:
        claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*key)
        return EMPTY_PLAN if claim is None else claims.reconcile(caches, claim)
    volume = caches.of(kinds.PERSISTENT_VOLUMES).get(*key)
    return EMPTY_PLAN if volume is None else volumes.reconcile(caches, volume)


# --- the keys that a change affects


def _keys_of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    claim: ReadOnlyTree = change.last_known
    yield Key.of(claim)
    yield from map(Key.of, binding.volumes_referring_to(caches, claim))


def _keys_of_volume(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the keys of the volume and of the claims that it refers or referred to; an unclaimed one affects all unbound
    claims of its class.
    """
    for volume in (tree for tree in change if tree is not None):
        yield Key.of(volume)
        ref = volume["spec"].get("claimRef")
        if ref is not None:
            yield Key(ref["namespace"], ref["name"])
    latest: ReadOnlyTree = change.last_known
    if latest["spec"].get("claimRef") is None:
        yield from map(Key.of, binding.unbound_claims(caches, storage_class_name(latest)))


def _claims_of_class(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the keys of the unbound claims of a class, and of those without a class."""
    yield from map(Key.of, binding.unbound_claims(caches, meta.name(change.last_known)))
    yield from (
        Key.of(claim) for claim in binding.unbound_claims(caches, "") if not has_storage_class_name(claim)
    )


def _claims_of_new_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the keys of the unbound claims of a new pod: their Events name the pod that has to be scheduled."""
    pod: PodView | None = change.new
    if pod is None or change.old is not None or pod.node:
        return
    for name in claims_of_pod(pod):
        claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*Key.parse(name))
        if claim is not None and not is_bind_completed(claim):
            yield Key.of(claim)


PERSISTENT_VOLUME_BINDER: Final = Controller(
    name="persistentvolume-binder-controller",
    queue="persistentvolume_binder",
    service_account="persistent-volume-binder",
    event_component="persistentvolume-controller",
    watches=(
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=_keys_of_claim),
        Watch(resource=kinds.PERSISTENT_VOLUMES, keys=_keys_of_volume),
        Watch(resource=kinds.STORAGE_CLASSES, keys=_claims_of_class),
        Watch(resource=kinds.PODS, keys=_claims_of_new_pod),
    ),
    indexes=binding.INDEXES,
    reconcile=reconcile,
    workers=1,
)

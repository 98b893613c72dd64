"""The storage protection controllers: they add protection finalizers, and remove them from deleted objects not in use.

In use are claims of pods, bound volumes, and volume attributes classes that claims or volumes refer to.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import attributes_classes
from mockube.apimachinery.wellknown import (
    FINALIZER_PV_PROTECTION,
    FINALIZER_PVC_PROTECTION,
    FINALIZER_VAC_PROTECTION,
)
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.indexes import BY_CLAIM, claims_of_pod
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Confirm, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object

from . import unused

_BY_CLASS: Final = "volumeAttributesClass"


def reconcile_claim(caches: Caches, key: Key, now: datetime) -> Plan:
    claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*key)
    if claim is None:
        return EMPTY_PLAN
    pods = caches.of(kinds.PODS).by_index(BY_CLAIM, str(key))
    if condition_updates := unused.update_actions(claim, pods, caches.gates, now):
        return Plan(actions=condition_updates)

    def is_unused() -> bool:
        return _is_unused(claim, pods)

    # The pods are read from the server before the removal, because data would be lost.
    confirmation = Confirm(
        resource=kinds.PODS, namespace=meta.namespace(claim), holds=partial(_is_unused, claim)
    )
    return _plan(kinds.PERSISTENT_VOLUME_CLAIMS, claim, FINALIZER_PVC_PROTECTION, is_unused, confirmation)


def _plan(
    resource: Resource[Any],
    obj: ReadOnlyTree,
    finalizer: str,
    is_unused: Callable[[], bool],
    *confirmations: Action,
) -> Plan:
    """Return the plan that adds the finalizer, or removes it from an object that is being deleted and is not in use."""
    is_protected = finalizer in meta.finalizers(obj)
    if not meta.is_deleting(obj):
        addition = Update(resource=resource, body=meta.with_finalizer(obj, finalizer))
        return EMPTY_PLAN if is_protected else Plan(actions=(addition,))
    if not is_protected or not is_unused():
        return EMPTY_PLAN
    removal = Update(resource=resource, body=meta.without_finalizer(obj, finalizer))
    return Plan(actions=(*confirmations, removal))


def _is_unused(claim: ReadOnlyTree, pods: Sequence[PodView]) -> bool:
    """Return whether no pod with a node uses a claim: other pods do not start with a claim that is being deleted."""
    return not any(pod.node and _uses(pod, claim) for pod in pods)


def _uses(pod: PodView, claim: ReadOnlyTree) -> bool:
    key = Key.of(claim)
    volumes = (pod.object.get("spec") or {}).get("volumes") or ()
    if key.name in {(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes}:
        return True
    # Another claim may have the name of an ephemeral volume's claim.
    is_own_claim = str(key) in claims_of_pod(pod) and meta.is_controlled_by(claim, pod.object)
    return is_own_claim and not _is_shut_down(pod)


def _is_shut_down(pod: PodView) -> bool:
    """Return whether the node has ended the pod.

    A pod that is deleted in the foreground waits for its own claims, so they must not wait for the pod.
    """
    return pod.deleting and meta.deletion_grace_period_seconds(pod.object) == 0


def _claims_of_changed_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the claims whose use may have changed."""
    if not any(pod is not None and any(claims_of_pod(pod)) for pod in change):
        return ()
    keys = {*_claims_of_deleted_pod(change.old, change.new)}
    if caches.gates.is_on(unused.GATE):
        keys |= {*unused.claims_of_change(change.old, change.new)}
    return map(Key.parse, sorted(keys))


def _claims_of_deleted_pod(old: PodView | None, new: PodView | None) -> Iterable[str]:
    """Return the claims of a pod that was deleted, or that its node has ended."""
    if old is None or (new is not None and new.uid == old.uid and not _is_shut_down(new)):
        return ()
    return claims_of_pod(old)


CLAIM_PROTECTION: Final = Controller(
    name="persistentvolumeclaim-protection-controller",
    queue="pvcprotection",
    service_account="pvc-protection-controller",
    watches=(
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=key_of_existing_object),
        Watch(resource=kinds.PODS, keys=_claims_of_changed_pod),
    ),
    indexes={kinds.PODS: {BY_CLAIM: claims_of_pod}},
    reconcile=reconcile_claim,
    workers=1,
)


def reconcile_volume(caches: Caches, key: Key, _: datetime) -> Plan:
    volume = caches.of(kinds.PERSISTENT_VOLUMES).get(*key)
    if volume is None:
        return EMPTY_PLAN
    phase = (volume.get("status") or {}).get("phase")
    return _plan(kinds.PERSISTENT_VOLUMES, volume, FINALIZER_PV_PROTECTION, lambda: phase != "Bound")


VOLUME_PROTECTION: Final = Controller(
    name="persistentvolume-protection-controller",
    queue="pvprotection",
    service_account="pv-protection-controller",
    watches=(Watch(resource=kinds.PERSISTENT_VOLUMES, keys=key_of_existing_object),),
    reconcile=reconcile_volume,
    workers=1,
)


def reconcile_class(caches: Caches, key: Key, _: datetime) -> Plan:
    attributes_class = caches.of(kinds.VOLUME_ATTRIBUTES_CLASSES).get(*key)
    if attributes_class is None:
        return EMPTY_PLAN

    def is_unused() -> bool:
        referrers = (kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS)
        return not any(caches.of(resource).by_index(_BY_CLASS, key.name) for resource in referrers)

    return _plan(kinds.VOLUME_ATTRIBUTES_CLASSES, attributes_class, FINALIZER_VAC_PROTECTION, is_unused)


def _classes_of_volume(volume: ReadOnlyTree) -> Iterable[str]:
    name = (volume.get("spec") or {}).get("volumeAttributesClassName")
    return (name,) if name else ()


def _classes_no_longer_used(
    classes: Callable[[ReadOnlyTree], Iterable[str]],
) -> Callable[[Caches, Change], Iterable[Key]]:
    """Return a function that maps a change to the classes that the object referred to before, and does not now."""

    def keys(_: Caches, change: Change) -> Iterable[Key]:
        old, new = change.old, change.new
        old_classes = set() if old is None else {*classes(old)}
        return [Key("", name) for name in old_classes - (set() if new is None else {*classes(new)})]

    return keys


ATTRIBUTES_CLASS_PROTECTION: Final = Controller(
    name="volumeattributesclass-protection-controller",
    queue="vacprotection",
    service_account="volumeattributesclass-protection-controller",
    watches=(
        Watch(resource=kinds.VOLUME_ATTRIBUTES_CLASSES, keys=key_of_existing_object),
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=_classes_no_longer_used(attributes_classes)),
        Watch(resource=kinds.PERSISTENT_VOLUMES, keys=_classes_no_longer_used(_classes_of_volume)),
    ),
    indexes={
        kinds.PERSISTENT_VOLUMES: {_BY_CLASS: _classes_of_volume},
        kinds.PERSISTENT_VOLUME_CLAIMS: {_BY_CLASS: attributes_classes},
    },
    reconcile=reconcile_class,
    workers=1,
)

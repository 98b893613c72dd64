"""Keep the protection finalizer of a claim while pods use it, and of a volume while it is bound."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_PV_PROTECTION, FINALIZER_PVC_PROTECTION
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Confirm, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads.indexes import BY_CLAIM, claims_of_pod


def reconcile_claim(caches: Caches, key: Key, _: datetime) -> Plan:
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
    if claim is None:
        return EMPTY_PLAN
    is_protected = FINALIZER_PVC_PROTECTION in meta.finalizers(claim)
    if not meta.is_deleting(claim):
        return EMPTY_PLAN if is_protected else _protect(claim)
    users = caches.of(PODS).by_index(BY_CLAIM, str(key))
    return _let_go(claim) if is_protected and _is_unused(claim, users) else EMPTY_PLAN


def _protect(claim: ReadOnlyTree) -> Plan:
    body = meta.with_finalizer(claim, FINALIZER_PVC_PROTECTION)
    return Plan(actions=(Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body),))


def _let_go(claim: ReadOnlyTree) -> Plan:
    """After a last look past the caches: data would be lost."""
    confirmed = Confirm(resource=PODS, namespace=meta.namespace(claim), holds=partial(_is_unused, claim))
    body = meta.without_finalizer(claim, FINALIZER_PVC_PROTECTION)
    return Plan(actions=(confirmed, Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body)))


def _is_unused(claim: ReadOnlyTree, pods: Sequence[PodView]) -> bool:
    """No pod without a node uses it: none starts with a claim that is being deleted."""
    return not any(pod.node and _uses(pod, claim) for pod in pods)


def _uses(pod: PodView, claim: ReadOnlyTree) -> bool:
    key = Key.of(claim)
    volumes = (pod.object.get("spec") or {}).get("volumes") or ()
    if key.name in {(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes}:
        return True
    # Another claim may have the name of an ephemeral volume's claim.
    is_its_own = str(key) in claims_of_pod(pod) and meta.is_controlled_by(claim, pod.object)
    return is_its_own and not _is_shut_down(pod)


def _is_shut_down(pod: PodView) -> bool:
    """Its node is done with it. One that is deleted in the foreground waits for its own claims: they need not wait."""
    return pod.deleting and meta.deletion_grace_period_seconds(pod.object) == 0


def _of_claim(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


def _of_pod(_: Caches, change: Change) -> Iterable[Key]:
    """Only a pod that is deleted, or has ended, frees a claim."""
    old: PodView | None = change.old
    new: PodView | None = change.new
    if old is None or (new is not None and new.uid == old.uid and not _is_shut_down(new)):
        return
    for claim in claims_of_pod(old):
        namespace, _sep, name = claim.partition("/")
        yield Key(namespace, name)


CLAIM_PROTECTION: Final = Controller(
    name="persistentvolumeclaim-protection-controller",
    queue="pvcprotection",
    service_account="pvc-protection-controller",
    watches=(
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claim),
        Watch(resource=PODS, keys=_of_pod),
    ),
    indexes={PODS: {BY_CLAIM: claims_of_pod}},
    reconcile=reconcile_claim,
    workers=1,
)


def reconcile_volume(caches: Caches, key: Key, _: datetime) -> Plan:
    volume = caches.of(PERSISTENT_VOLUMES).get(*key)
    if volume is None:
        return EMPTY_PLAN
    is_protected = FINALIZER_PV_PROTECTION in meta.finalizers(volume)
    if not meta.is_deleting(volume):
        return EMPTY_PLAN if is_protected else _write(meta.with_finalizer(volume, FINALIZER_PV_PROTECTION))
    if is_protected and (volume.get("status") or {}).get("phase") != "Bound":
        return _write(meta.without_finalizer(volume, FINALIZER_PV_PROTECTION))
    return EMPTY_PLAN


def _write(body: ReadOnlyTree) -> Plan:
    return Plan(actions=(Update(resource=PERSISTENT_VOLUMES, body=body),))


def _of_volume(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


VOLUME_PROTECTION: Final = Controller(
    name="persistentvolume-protection-controller",
    queue="pvprotection",
    service_account="pv-protection-controller",
    watches=(Watch(resource=PERSISTENT_VOLUMES, keys=_of_volume),),
    reconcile=reconcile_volume,
    workers=1,
)

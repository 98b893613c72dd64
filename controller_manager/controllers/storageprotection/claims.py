"""A claim stays for as long as there are pods on nodes that use it, whatever has become of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from apimachinery import meta
from apimachinery.wellknown import FINALIZER_PVC_PROTECTION
from controller_manager.indexes import BY_CLAIM, claims_of_pod
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from controller_manager.runtime.actions import NOTHING, Confirm, Plan, Update
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key, Tree
from controller_manager.workloads.podview import PodView


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
    if claim is None:
        return NOTHING
    is_protected = FINALIZER_PVC_PROTECTION in meta.finalizers(claim)
    if not meta.is_deleting(claim):
        return NOTHING if is_protected else _protect(claim)
    users = caches.of(PODS).by_index(BY_CLAIM, str(key))
    return _let_go(claim) if is_protected and _is_unused(claim, users) else NOTHING


def _protect(claim: Tree) -> Plan:
    body = meta.with_finalizer(claim, FINALIZER_PVC_PROTECTION)
    return Plan(actions=(Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body),))


def _let_go(claim: Tree) -> Plan:
    """After a last look past the caches: data would be lost."""
    confirmed = Confirm(resource=PODS, namespace=meta.namespace(claim), holds=partial(_is_unused, claim))
    body = meta.without_finalizer(claim, FINALIZER_PVC_PROTECTION)
    return Plan(actions=(confirmed, Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body)))


def _is_unused(claim: Tree, pods: Sequence[PodView]) -> bool:
    """No pod without a node uses it: none starts with a claim that is being deleted."""
    return not any(pod.node and _uses(pod, claim) for pod in pods)


def _uses(pod: PodView, claim: Tree) -> bool:
    key = Key.of(claim)
    volumes = (pod.object.get("spec") or {}).get("volumes") or ()
    if key.name in {(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes}:
        return True
    # What an ephemeral volume's claim is named may be a stranger's name, too.
    is_its_own = str(key) in claims_of_pod(pod) and meta.is_controlled_by(claim, pod.object)
    return is_its_own and not _is_shut_down(pod)


def _is_shut_down(pod: PodView) -> bool:
    """Its node is done with it. One that is deleted in the foreground waits for its own claims: they need not wait."""
    return pod.deleting and meta.deletion_grace_period_seconds(pod.object) == 0


def _of_claim(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


def _of_pod(_: Caches, change: Change) -> Iterable[Key]:
    """Only a pod that is gone, or shut down, frees a claim."""
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
    reconcile=reconcile,
    workers=1,
)

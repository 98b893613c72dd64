"""Remove reservations of deleted pods from a claim, and with the last of them its allocation. Pure."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS, RESOURCE_CLAIMS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Confirm,
    Delete,
    ObjectRef,
    Outcome,
    Plan,
    Update,
)
from mockube.controller_manager.workloads.device_claims import (
    FINALIZER,
    allocation,
    is_done,
    owning_pod,
    reserved_for,
)


def reconcile_claim(deleted_pods: Collection[str], caches: Caches, key: Key) -> Plan:
    """`deleted_pods` are uids of pods whose deletion was seen."""
    claim = caches.of(RESOURCE_CLAIMS).get(*key)
    if claim is None:
        return EMPTY_PLAN
    reserved = reserved_for(claim)
    unknown = [
        consumer for consumer in reserved if _is_unknown(deleted_pods, caches, key.namespace, consumer)
    ]
    remaining = [consumer for consumer in reserved if _is_kept(deleted_pods, caches, key.namespace, consumer)]
    deletion = () if remaining else _deletion(caches, claim)
    if len(remaining) < len(reserved):
        confirmations = [_confirmation(key.namespace, consumer) for consumer in unknown]
        changed = _with_consumers(claim, remaining)
        return Plan(actions=(*confirmations, _status(changed)), then=partial(_without_finalizer, deletion))
    if FINALIZER in meta.finalizers(claim) and meta.is_deleting(claim) and not remaining:
        if allocation(claim) is not None:
            return Plan(
                actions=(_status(_with_consumers(claim, ())),), then=partial(_without_finalizer, deletion)
            )
        return Plan(actions=(_remove_finalizer(claim), *deletion))
    return Plan(actions=deletion)


def _is_pod(consumer: ReadOnlyTree) -> bool:
    return not consumer.get("apiGroup") and consumer.get("resource") == "pods"


def _is_kept(deleted_pods: Collection[str], caches: Caches, namespace: str, consumer: ReadOnlyTree) -> bool:
    """Whether the reservation stays; those of consumers of other kinds do."""
    if not _is_pod(consumer):
        return True
    pod = caches.of(PODS).get(namespace, consumer["name"])
    if consumer["uid"] in deleted_pods or pod is None:
        return False
    return pod.uid == consumer["uid"] and not is_done(pod)


def _is_unknown(
    deleted_pods: Collection[str], caches: Caches, namespace: str, consumer: ReadOnlyTree
) -> bool:
    """Whether the pod is absent from the cache, which may only be behind."""
    absent = _is_pod(consumer) and caches.of(PODS).get(namespace, consumer["name"]) is None
    return absent and consumer["uid"] not in deleted_pods


def _confirmation(namespace: str, consumer: ReadOnlyTree) -> Confirm:
    def holds(pods: Sequence[PodView]) -> bool:
        return all(pod.uid != consumer["uid"] for pod in pods)

    return Confirm(resource=PODS, namespace=namespace, name=consumer["name"], holds=holds)


def _with_consumers(claim: ReadOnlyTree, remaining: Sequence[ReadOnlyTree]) -> dict[str, Any]:
    """Deallocate the devices of an unused claim."""
    status = {**(claim.get("status") or {})}
    status.pop("reservedFor", None)
    if remaining:
        status["reservedFor"] = [*remaining]
    elif FINALIZER in meta.finalizers(claim):
        status.pop("allocation", None)
    return {**claim, "status": status}


def _status(claim: ReadOnlyTree) -> Update:
    return Update(resource=RESOURCE_CLAIMS, body=claim, subresource="status")


def _remove_finalizer(claim: ReadOnlyTree) -> Update:
    return Update(resource=RESOURCE_CLAIMS, body=meta.without_finalizer(claim, FINALIZER))


def _without_finalizer(deletion: tuple[Action, ...], outcome: Outcome) -> Plan | None:
    """What follows the write of the status."""
    answers = [write.answer for write in outcome.of(Update) if write.answer is not None]
    if outcome.error is not None or not answers:
        return None
    claim = answers[-1]
    is_free = FINALIZER in meta.finalizers(claim) and allocation(claim) is None
    return Plan(actions=((_remove_finalizer(claim),) if is_free else ()) + deletion)


def _deletion(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    """Delete the claim of a pod that has ended; after the pod's deletion the garbage collector does."""
    owner = owning_pod(claim)
    pod = None if owner is None else caches.of(PODS).get(meta.namespace(claim), owner["name"])
    if owner is None or pod is None or (pod.uid == owner["uid"] and not is_done(pod)):
        return ()
    return (Delete(resource=RESOURCE_CLAIMS, objects=(ObjectRef.of(claim),)),)

"""The reservations of a ResourceClaim: those of deleted pods are removed, with the last one also the allocation."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.component_helpers import device_claims
from mockube.client.kinds import PODS, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Confirm,
    Delete,
    ObjectRef,
    Plan,
    PlanResult,
    Update,
)


def reconcile_claim(deleted_pods: Collection[str], caches: Caches, key: Key) -> Plan:
    """Remove outdated reservations of a claim; `deleted_pods` are the uids of pods with a deletion event."""
    claim = caches.of(RESOURCE_CLAIMS).get(*key)
    if claim is None:
        return EMPTY_PLAN
    consumers = device_claims.reserved_for(claim)
    uncertain_consumers = [
        consumer
        for consumer in consumers
        if _is_absent_from_cache(deleted_pods, caches, key.namespace, consumer)
    ]
    valid_consumers = [
        consumer
        for consumer in consumers
        if _is_reservation_valid(deleted_pods, caches, key.namespace, consumer)
    ]
    deletion = () if valid_consumers else _deletion(caches, claim)
    if len(valid_consumers) < len(consumers):
        confirmations = [_confirmation(key.namespace, consumer) for consumer in uncertain_consumers]
        updated_claim = _with_consumers(claim, valid_consumers)
        return Plan(
            actions=(*confirmations, _status(updated_claim)), then=partial(_plan_after_status_write, deletion)
        )
    if device_claims.FINALIZER in meta.finalizers(claim) and meta.is_deleting(claim) and not valid_consumers:
        if device_claims.allocation(claim) is not None:
            return Plan(
                actions=(_status(_with_consumers(claim, ())),),
                then=partial(_plan_after_status_write, deletion),
            )
        return Plan(actions=(_remove_finalizer(claim), *deletion))
    return Plan(actions=deletion)


def _is_pod(consumer: ReadOnlyTree) -> bool:
    return not consumer.get("apiGroup") and consumer.get("resource") == "pods"


def _is_reservation_valid(
    deleted_pods: Collection[str], caches: Caches, namespace: str, consumer: ReadOnlyTree
) -> bool:
    """Return whether a reservation is valid: its pod exists and has not ended, or its consumer is of another kind."""
    if not _is_pod(consumer):
        return True
    pod = caches.of(PODS).get(namespace, consumer["name"])
    if consumer["uid"] in deleted_pods or pod is None:
        return False
    return pod.uid == consumer["uid"] and not device_claims.is_done(pod)


def _is_absent_from_cache(
    deleted_pods: Collection[str], caches: Caches, namespace: str, consumer: ReadOnlyTree
) -> bool:
    """Return whether the pod is absent from the cache, although the cache may be outdated."""
    absent = _is_pod(consumer) and caches.of(PODS).get(namespace, consumer["name"]) is None
    return absent and consumer["uid"] not in deleted_pods


def _confirmation(namespace: str, consumer: ReadOnlyTree) -> Confirm:
    def holds(pods: Sequence[PodView]) -> bool:
        return all(pod.uid != consumer["uid"] for pod in pods)

    return Confirm(resource=PODS, namespace=namespace, name=consumer["name"], holds=holds)


def _with_consumers(claim: ReadOnlyTree, consumers: Sequence[ReadOnlyTree]) -> dict[str, Any]:
    """Return the claim with these consumers; without any, its devices are deallocated."""
    status = {**(claim.get("status") or {})}
    status.pop("reservedFor", None)
    if consumers:
        status["reservedFor"] = [*consumers]
    elif device_claims.FINALIZER in meta.finalizers(claim):
        status.pop("allocation", None)
    return {**claim, "status": status}


def _status(claim: ReadOnlyTree) -> Update:
    return Update(resource=RESOURCE_CLAIMS, body=claim, subresource="status")


def _remove_finalizer(claim: ReadOnlyTree) -> Update:
    return Update(resource=RESOURCE_CLAIMS, body=meta.without_finalizer(claim, device_claims.FINALIZER))


def _plan_after_status_write(deletion: tuple[Action, ...], outcome: PlanResult) -> Plan | None:
    """Return the plan that removes the finalizer of a deallocated claim, and deletes the claim if its pod has ended."""
    answers = [write.response for write in outcome.of(Update) if write.response is not None]
    if outcome.error is not None or not answers:
        return None
    claim = answers[-1]
    is_deallocated = (
        device_claims.FINALIZER in meta.finalizers(claim) and device_claims.allocation(claim) is None
    )
    return Plan(actions=((_remove_finalizer(claim),) if is_deallocated else ()) + deletion)


def _deletion(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    """Delete the claim of a pod that has ended. After the pod's deletion the garbage collector deletes it."""
    owner = device_claims.owning_pod(claim)
    pod = None if owner is None else caches.of(PODS).get(meta.namespace(claim), owner["name"])
    if owner is None or pod is None or (pod.uid == owner["uid"] and not device_claims.is_done(pod)):
        return ()
    return (Delete(resource=RESOURCE_CLAIMS, objects=(ObjectRef.of(claim),)),)

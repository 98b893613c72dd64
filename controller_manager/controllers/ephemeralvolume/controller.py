"""The ephemeral volume controller: it creates a claim for each such volume; the pod owns the claim."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.indexes import BY_CLAIM, claims_of_pod
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    EventTemplate,
    Plan,
    RecordEvent,
)
from mockube.controller_manager.control.controller import Controller, Watch


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    pod = caches.of(PODS).get(*key)
    if pod is None or pod.deleting:
        return EMPTY_PLAN
    present = caches.of(PERSISTENT_VOLUME_CLAIMS)
    actions: list[Action] = []
    for volume in _ephemeral_volumes(pod):
        claim = present.get(key.namespace, _claim_name(pod, volume))
        if claim is None:
            actions.append(_creation(pod, volume))
        elif not meta.is_controlled_by(claim, pod.object):
            actions.append(_foreign_claim_event(pod, volume))
    return Plan(actions=tuple(actions))


def _creation(pod: PodView, volume: ReadOnlyTree) -> Create:
    failed = ("FailedBinding", f"ephemeral volume {volume['name']}: create PVC {{name}}: {{error}}")
    return Create(
        resource=PERSISTENT_VOLUME_CLAIMS,
        bodies=(_claim(pod, volume),),
        event=EventTemplate(about=pod.object, on_failure=failed),
    )


def _foreign_claim_event(pod: PodView, volume: ReadOnlyTree) -> RecordEvent:
    claim = f"{pod.key.namespace}/{_claim_name(pod, volume)}"
    problem = f"PVC {claim} was not created for pod {pod.key} (pod is not owner)"
    message = f"ephemeral volume {volume['name']}: {problem}"
    return RecordEvent(about=pod.object, type="Warning", reason="FailedBinding", message=message)


def _ephemeral_volumes(pod: PodView) -> list[ReadOnlyTree]:
    volumes = (pod.object.get("spec") or {}).get("volumes") or ()
    return [volume for volume in volumes if "ephemeral" in volume]


def _claim_name(pod: PodView, volume: ReadOnlyTree) -> str:
    return f"{pod.key.name}-{volume['name']}"


def _claim(pod: PodView, volume: ReadOnlyTree) -> dict[str, Any]:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    metadata = {
        "name": _claim_name(pod, volume),
        "namespace": pod.key.namespace,
        "labels": meta.labels(template),
        "annotations": meta.annotations(template),
        "ownerReferences": [meta.controller_reference(pod.object)],
    }
    return {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": template.get("spec") or {},
    }


def _pod_key(_: Caches, change: Change) -> Iterable[Key]:
    pod: PodView | None = change.new
    return () if pod is None or pod.deleting or not _ephemeral_volumes(pod) else (pod.key,)


def _pods_of_deleted_claim(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the pods that use a deleted claim, which they need not have owned: a new one is created."""
    if change.new is not None:
        return ()
    users = caches.of(PODS).by_index(BY_CLAIM, str(Key.of(change.last_known)))
    return tuple(pod.key for pod in users if not pod.deleting and _ephemeral_volumes(pod))


EPHEMERAL_VOLUME: Final = Controller(
    name="ephemeral-volume-controller",
    queue="ephemeral_volume",
    service_account="ephemeral-volume-controller",
    event_component="ephemeral_volume",
    watches=(
        Watch(resource=PODS, keys=_pod_key),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_pods_of_deleted_claim),
    ),
    reconcile=reconcile,
    workers=5,
    indexes={PODS: {BY_CLAIM: claims_of_pod}},
)

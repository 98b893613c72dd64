"""The claims of a pod: creation from templates, their names in the pod's status, and reservation for a bound pod."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.component_helpers import device_claims
from mockube.client.component_helpers.device_claims import NotCreated
from mockube.client.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    EventTemplate,
    Patch,
    Plan,
    PlanResult,
    RecordEvent,
    Update,
)

BY_OWNER: Final = "claimPodOwner"
FIELD_MANAGER: Final = "ResourceClaimController"
_FAILED: Final = "FailedResourceClaimCreation"
_KEEPS_NAMES: Final = "1.37"
"""The first minor release whose controller writes the names of older claims with those of new ones."""
_MAX_BASE_LENGTH: Final = 57
"""The maximum length of a name of 63 characters without a hyphen and a suffix of five."""

Names = Mapping[str, str]
"""The names of ResourceClaims, by the names of the pod's claims."""


def reconcile_pod(caches: Caches, key: Key) -> Plan:
    pod = caches.of(PODS).get(*key)
    if pod is None or pod.deleting or not needs_work(caches, pod):
        return EMPTY_PLAN
    actions: list[Action] = []
    claim_names: dict[str, str] = {}
    for pod_claim in device_claims.pod_claims(pod):
        if not _needs_creation(caches, pod, pod_claim):
            continue
        present = _find_claim(caches, pod, pod_claim)
        template_name = pod_claim["resourceClaimTemplateName"]
        if present is not None:
            claim_names[pod_claim["name"]] = meta.name(present)
        elif (template := caches.of(RESOURCE_CLAIM_TEMPLATES).get(key.namespace, template_name)) is None:
            problem = _missing_template(template_name)
            actions.append(_failure(pod, pod_claim, problem))
            # As upstream: the claims before this one are created, those after it are not.
            return Plan(actions=tuple(actions), then=_requeue_with_backoff(problem))
        else:
            actions.append(_creation(pod, pod_claim, template))
    if not actions and not claim_names:
        return _reservations(caches, pod)
    if not caches.gates.is_before(_KEEPS_NAMES):
        claim_names = {**_known_names(pod), **claim_names}
    return Plan(actions=tuple(actions), then=partial(_plan_claim_statuses, pod, claim_names))


def needs_work(caches: Caches, pod: PodView) -> bool:
    """Return whether a claim has to be created or reserved. No claim is created for a pod that has ended."""
    if device_claims.is_done(pod):
        return False

    def claim_needs_work(claim: ReadOnlyTree | None, is_from_template: bool) -> bool:  # noqa: FBT001 - as it is called
        if claim is None:
            return is_from_template
        is_usable = not is_from_template or device_claims.is_for_pod(pod, claim)
        return is_usable and bool(pod.node) and _needs_reservation(pod, claim)

    return device_claims.has_claim(pod, caches.of(RESOURCE_CLAIMS), claim_needs_work)


def _needs_reservation(pod: PodView, claim: ReadOnlyTree) -> bool:
    return device_claims.allocation(claim) is not None and not device_claims.is_reserved_for(pod, claim)


def _needs_creation(caches: Caches, pod: PodView, pod_claim: ReadOnlyTree) -> bool:
    if not pod_claim.get("resourceClaimTemplateName"):
        return False
    try:
        name = device_claims.claim_name(pod, pod_claim)
    except NotCreated:
        return True
    claim = None if name is None else caches.of(RESOURCE_CLAIMS).get(pod.key.namespace, name)
    return name is not None and (claim is None or not device_claims.is_for_pod(pod, claim))


def _find_claim(caches: Caches, pod: PodView, pod_claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return a claim that was created although the pod's status does not name it yet."""
    owned = caches.of(RESOURCE_CLAIMS).by_index(BY_OWNER, pod.uid)
    matching = (
        claim
        for claim in owned
        if meta.annotations(claim).get(device_claims.POD_CLAIM_NAME) == pod_claim["name"]
    )
    return next(matching, None)


def _creation(pod: PodView, pod_claim: ReadOnlyTree, template: ReadOnlyTree) -> Create:
    failed = f"PodResourceClaim {pod_claim['name']}: create ResourceClaim : {{error}}"
    return Create(
        resource=RESOURCE_CLAIMS,
        bodies=(_claim(pod, pod_claim, template),),
        event=EventTemplate(about=pod.object, on_failure=(_FAILED, failed)),
    )


def _claim(pod: PodView, pod_claim: ReadOnlyTree, template: ReadOnlyTree) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid, "controller": True}
    spec = template["spec"]
    metadata = {
        "generateName": generate_name(pod.key.name, pod_claim["name"]),
        "namespace": pod.key.namespace,
        "labels": meta.labels(spec),
        "annotations": {**meta.annotations(spec), device_claims.POD_CLAIM_NAME: pod_claim["name"]},
        "ownerReferences": [owner],
    }
    return {
        "kind": RESOURCE_CLAIMS.kind,
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": spec.get("spec") or {},
    }


def generate_name(pod: str, claim: str) -> str:
    """Return the prefix of a claim's name; if it is too long, both names are shortened in proportion."""
    base_name = f"{pod}-{claim}-"
    if len(base_name) <= _MAX_BASE_LENGTH:
        return base_name
    parts = [name[: len(name) * _MAX_BASE_LENGTH // len(base_name)] for name in (pod, claim)]
    return "-".join(parts)


def _missing_template(name: str) -> str:
    return f'resource claim template "{name}": resourceclaimtemplate.{RESOURCE_CLAIM_TEMPLATES.group} "{name}" not found'


def _failure(pod: PodView, pod_claim: ReadOnlyTree, problem: str) -> RecordEvent:
    message = f"PodResourceClaim {pod_claim['name']}: {problem}"
    return RecordEvent(about=pod.object, type="Warning", reason=_FAILED, message=message)


def _requeue_with_backoff(problem: str) -> Callable[[PlanResult], None]:
    """Return a function that requeues the key, whatever the outcome of the actions is."""

    def raise_(_: PlanResult) -> None:
        raise RequeueWithBackoff(problem)

    return raise_


def _known_names(pod: PodView) -> dict[str, str]:
    statuses = (pod.object.get("status") or {}).get("resourceClaimStatuses") or ()
    return {
        status["name"]: status["resourceClaimName"] for status in statuses if status.get("resourceClaimName")
    }


def _plan_claim_statuses(pod: PodView, claim_names: Names, outcome: PlanResult) -> Plan | None:
    """Return the plan that writes the names of the claims into the pod's status, unless a creation failed."""
    if outcome.error is not None:
        return None
    created = {
        meta.annotations(write.response)[device_claims.POD_CLAIM_NAME]: write.key.name
        for write in outcome.of(Create)
        if write.response is not None
    }
    names = {**claim_names, **created}
    if not names:
        return None
    statuses = [{"name": name, "resourceClaimName": claim} for name, claim in sorted(names.items())]
    body = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": pod.key.name, "namespace": pod.key.namespace},
        "status": {"resourceClaimStatuses": statuses},
    }
    patch = Patch(
        resource=PODS,
        key=pod.key,
        body=body,
        kind="apply",
        subresource="status",
        field_manager=FIELD_MANAGER,
    )
    return Plan(actions=(patch,))


def _reservations(caches: Caches, pod: PodView) -> Plan:
    """Return the plan that reserves the claims of a pod that was bound without the scheduler."""
    return Plan(actions=tuple(_reservation_updates(caches, pod))) if pod.node else EMPTY_PLAN


def _reservation_updates(caches: Caches, pod: PodView) -> Iterator[Update]:
    for pod_claim in device_claims.pod_claims(pod):
        name = device_claims.claim_name(pod, pod_claim)
        if name is None:
            continue
        claim = caches.of(RESOURCE_CLAIMS).get(pod.key.namespace, name)
        if claim is None:
            return
        if _needs_reservation(pod, claim):
            yield Update(
                resource=RESOURCE_CLAIMS, body=device_claims.with_consumer(pod, claim), subresource="status"
            )

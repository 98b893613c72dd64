"""The status of an Advanced StatefulSet: the fields of StatefulSets, updated available pods, and volume claims."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.controller_manager.control.actions import Action, Create, Update
from mockube.controller_manager.workloads.stateful import identity, status, storage
from mockube.controller_manager.workloads.stateful.reconciliation import ReconcileResult
from mockube.controller_manager.workloads.stateful.state import StatefulSetState

FAILED_CREATE: Final = "FailedCreatePod"
FAILED_UPDATE: Final = "FailedUpdatePod"


def of(state: StatefulSetState, result: ReconcileResult) -> dict[str, Any]:
    counts = status.count_pods(state, result.collision_count, result.replaced)
    is_rolling = not state.owner.on_delete
    ready = [pod for pod in status.ready_pods(state.pods) if identity.revision_of(pod) == state.update_name]
    return {
        **(status.complete_update(counts, state.owner.replicas) if is_rolling else counts),
        "updatedReadyReplicas": len(ready),
        "updatedAvailableReplicas": sum(map(state.is_available, ready)),
        "labelSelector": str(state.owner.selector),
        "volumeClaims": [*_volume_claims(state)],
        "conditions": _conditions(state, result),
    }


# --- claims


def _volume_claims(state: StatefulSetState) -> Iterator[dict[str, Any]]:
    ordinals = [slot.ordinal for slot in state.slots]
    for template in state.owner.claim_templates:
        names = (storage.claim_name(state.owner, template, ordinal) for ordinal in ordinals)
        claims = [state.claims[name] for name in names if name in state.claims]
        compatible = [
            claim for claim in claims if not meta.is_deleting(claim) and _claim_matches(claim, template)
        ]
        yield {
            "volumeClaimName": meta.name(template),
            "compatibleReplicas": len(compatible),
            "compatibleReadyReplicas": sum(map(_has_requested_capacity, compatible)),
        }


def _claim_matches(claim: ReadOnlyTree, template: ReadOnlyTree) -> bool:
    """Return whether a claim has the template's class and access modes, and requests at least as much storage."""
    claim_spec, template_spec = claim["spec"], template.get("spec") or {}
    classes = claim_spec.get("storageClassName"), template_spec.get("storageClassName")
    if None not in classes and classes[0] != classes[1]:
        return False
    if [*(claim_spec.get("accessModes") or ())] != [*(template_spec.get("accessModes") or ())]:
        return False
    return _storage(_requests(claim)) >= _storage(_requests(template))


def _has_requested_capacity(claim: ReadOnlyTree) -> bool:
    return _storage((claim.get("status") or {}).get("capacity") or {}) >= _storage(_requests(claim))


def _requests(claim: ReadOnlyTree) -> ReadOnlyTree:
    requests: ReadOnlyTree = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return requests


def _storage(amounts: ReadOnlyTree) -> quantity.Quantity:
    return quantity.from_json(amounts.get("storage") or 0)


# --- conditions


def _conditions(state: StatefulSetState, result: ReconcileResult) -> list[ReadOnlyTree]:
    """Return the condition of this reconciliation's failure; none if it succeeded."""
    failure_type = _failure_type(result)
    if failure_type is None:
        return []
    message = _MESSAGES[failure_type].format(error=result.error)
    condition = {"type": failure_type, "status": "True", "message": message}
    old = [present for present in conditions.of(state.owner.object) if present["type"] == failure_type]
    return conditions.set_condition(old, condition, state.now)


_MESSAGES: Final = {
    FAILED_CREATE: "StatefulPodControl failed to create Pod error: {error}",
    FAILED_UPDATE: "StatefulPodControl failed to update Pod error: {error}",
}


def _failure_type(result: ReconcileResult) -> str | None:
    name = _failed_object_name(result.error)
    if name and name in _object_names(result.actions, Create):
        return FAILED_CREATE
    return FAILED_UPDATE if name and name in _object_names(result.actions, Update) else None


def _failed_object_name(error: ApiError | None) -> str:
    """Return the name of the object that the error concerns; empty if unknown."""
    return error.details.name if error is not None and error.details is not None else ""


def _object_names(actions: Iterable[Action], action_type: type[Create | Update]) -> set[str]:
    """Return the names of the pods and claims that actions of one type write."""
    bodies: list[ReadOnlyTree] = []
    for action in actions:
        if isinstance(action, action_type) and action.resource in (PODS, PERSISTENT_VOLUME_CLAIMS):
            bodies += action.bodies if isinstance(action, Create) else (action.body,)
    return {meta.name(body) for body in bodies}

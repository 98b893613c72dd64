"""The status of an advanced set: all sets' fields, the newest revision's available pods, and the claims."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.controller_manager.control.actions import Action, Create, Update
from mockube.controller_manager.workloads.stateful import identity, status, storage
from mockube.controller_manager.workloads.stateful.reconciliation import Account
from mockube.controller_manager.workloads.stateful.state import StatefulSetState

FAILED_CREATE: Final = "FailedCreatePod"
FAILED_UPDATE: Final = "FailedUpdatePod"


def of(state: StatefulSetState, account: Account) -> dict[str, Any]:
    counted = status.count_pods(state, account.collision_count, account.replaced)
    is_rolling = not state.owner.on_delete
    ready = [pod for pod in status.ready_pods(state.pods) if identity.revision_of(pod) == state.update_name]
    return {
        **(status.complete_update(counted, state.owner.replicas) if is_rolling else counted),
        "updatedReadyReplicas": len(ready),
        "updatedAvailableReplicas": sum(map(state.is_available, ready)),
        "labelSelector": str(state.owner.selector),
        "volumeClaims": [*_volume_claims(state)],
        "conditions": _conditions(state, account),
    }


# --- claims


def _volume_claims(state: StatefulSetState) -> Iterator[dict[str, Any]]:
    ordinals = [slot.ordinal for slot in state.slots]
    for template in state.owner.claim_templates:
        names = (storage.claim_name(state.owner, template, ordinal) for ordinal in ordinals)
        claims = [state.claims[name] for name in names if name in state.claims]
        fitting = [
            claim for claim in claims if not meta.is_deleting(claim) and _claim_matches(claim, template)
        ]
        yield {
            "volumeClaimName": meta.name(template),
            "compatibleReplicas": len(fitting),
            "compatibleReadyReplicas": sum(map(_has_what_it_asks_for, fitting)),
        }


def _claim_matches(claim: ReadOnlyTree, template: ReadOnlyTree) -> bool:
    """Whether its class and modes are the template's, and it requests at least as much storage."""
    claim_spec, template_spec = claim["spec"], template.get("spec") or {}
    classes = claim_spec.get("storageClassName"), template_spec.get("storageClassName")
    if None not in classes and classes[0] != classes[1]:
        return False
    if [*(claim_spec.get("accessModes") or ())] != [*(template_spec.get("accessModes") or ())]:
        return False
    return _amount(_requests(claim)) >= _amount(_requests(template))


def _has_what_it_asks_for(claim: ReadOnlyTree) -> bool:
    return _amount((claim.get("status") or {}).get("capacity") or {}) >= _amount(_requests(claim))


def _requests(claim: ReadOnlyTree) -> ReadOnlyTree:
    requests: ReadOnlyTree = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return requests


def _amount(amounts: ReadOnlyTree) -> quantity.Quantity:
    return quantity.from_json(amounts.get("storage") or 0)


# --- conditions


def _conditions(state: StatefulSetState, account: Account) -> list[ReadOnlyTree]:
    """The failure of this round only."""
    failed = _failure_reason(account)
    if failed is None:
        return []
    condition = {"type": failed, "status": "True", "message": _MESSAGES[failed].format(error=account.error)}
    old = [present for present in conditions.of(state.owner.object) if present["type"] == failed]
    return conditions.set_condition(old, condition, state.now)


_MESSAGES: Final = {
    FAILED_CREATE: "StatefulPodControl failed to create Pod error: {error}",
    FAILED_UPDATE: "StatefulPodControl failed to update Pod error: {error}",
}


def _failure_reason(account: Account) -> str | None:
    name = _name(account.error)
    if name and name in _names(account.actions, Create):
        return FAILED_CREATE
    return FAILED_UPDATE if name and name in _names(account.actions, Update) else None


def _name(error: ApiError | None) -> str:
    """Of what the error is about."""
    return error.details.name if error is not None and error.details is not None else ""


def _names(actions: Iterable[Action], effect: type[Create | Update]) -> set[str]:
    """The pods that were to be made or mended, and what was to be made for them."""
    bodies: list[ReadOnlyTree] = []
    for action in actions:
        if isinstance(action, effect) and action.resource in (PODS, PERSISTENT_VOLUME_CLAIMS):
            bodies += action.bodies if isinstance(action, Create) else (action.body,)
    return {meta.name(body) for body in bodies}

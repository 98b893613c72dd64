"""The condition Unused of claims: since when no pod refers to a bound claim. Reasons and messages are upstream's."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.indexes import claims_of_pod
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Action, Confirm, Update

GATE: Final = "PersistentVolumeClaimUnusedSinceTime"
_WAITS_FOR_BINDING: Final = "1.37"
"""The first minor release that reports bound claims only, so that its updates do not conflict with those of the binder."""
_UNUSED: Final = "Unused"
_IN_USE: Final = ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
_NOT_IN_USE: Final = ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
_STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def update_actions(
    claim: ReadOnlyTree, pods: Sequence[PodView], gates: FeatureGates, now: datetime
) -> tuple[Action, ...]:
    """Return the update of the condition; nothing if it is current. `pods` are those that may use the claim."""
    if not gates.is_on(GATE) or meta.is_deleting(claim):
        return ()
    if (claim.get("status") or {}).get("phase") != "Bound" and not gates.is_before(_WAITS_FOR_BINDING):
        return ()
    is_unused = _is_unused(claim, pods)
    present = conditions.get(claim, _UNUSED)
    if present is not None and (present["status"] == "True") is is_unused:
        return ()
    update = Update(
        resource=PERSISTENT_VOLUME_CLAIMS,
        body=_with_condition(claim, *(_NOT_IN_USE if is_unused else _IN_USE), now),
        subresource="status",
    )
    if not is_unused:
        return (update,)
    # A new pod may not be in the cache yet.
    confirmation = Confirm(resource=PODS, namespace=meta.namespace(claim), holds=partial(_is_unused, claim))
    return confirmation, update


def _with_condition(
    claim: ReadOnlyTree, status: str, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    condition = {
        "type": _UNUSED,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    others = conditions.of(claim)
    if conditions.find(others, _UNUSED) is None:
        updated = [*others, condition]
    else:
        updated = [condition if other.get("type") == _UNUSED else other for other in others]
    return meta.with_value(claim, ("status", "conditions"), updated)


def _is_unused(claim: ReadOnlyTree, pods: Sequence[PodView]) -> bool:
    return not any(_refers_to(pod, claim) for pod in pods if not has_ended(pod))


def _refers_to(pod: PodView, claim: ReadOnlyTree) -> bool:
    """Return whether a pod refers to a claim. One with the name of an ephemeral volume's claim may be another's."""
    key = Key.of(claim)
    if key.namespace != pod.key.namespace or str(key) not in claims_of_pod(pod):
        return False
    volumes = (pod.object.get("spec") or {}).get("volumes") or ()
    claim_names = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return key.name in claim_names or meta.is_controlled_by(claim, pod.object)


def has_ended(pod: PodView) -> bool:
    """Return whether no container of a pod runs, or will run again."""
    if pod.is_terminal:
        return True
    status = pod.object.get("status") or {}
    containers = (container for name in _STATUS_LISTS for container in status.get(name) or ())
    return pod.deleting and not any(map(_is_running, containers))


def _is_running(container: ReadOnlyTree) -> bool:
    state = container.get("state") or {}
    return state.get("terminated") is None and state.get("waiting") is None


def claims_of_change(old: PodView | None, new: PodView | None) -> Iterable[str]:
    """Yield the claims whose use a change of a pod may begin or end."""
    if old is not None and new is not None and old.uid == new.uid and has_ended(old) == has_ended(new):
        return
    for pod in (old, new):
        if pod is not None:
            yield from claims_of_pod(pod)

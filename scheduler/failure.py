"""What follows if no node is feasible for a pod: a preemption, or only a message. Pure."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.device_claims import reserved_for

from .choice import FeasibleNodes, diagnosis
from .cluster import ClusterSnapshot
from .in_tree import DYNAMIC_RESOURCES, devices_for
from .podinfo import PodInfo
from .preemption import Candidate, Preemption
from .profile import Profile
from .profiles import DEFAULT_PROFILE

if TYPE_CHECKING:
    from .devices.claims import DeviceClaims

_NO_CLAIMS_TO_DEALLOCATE: Final = "no new claims to deallocate"
"""The message of the DynamicResources plugin's PostFilter for pods without claims, before 1.37."""
_STILL_NOT_SCHEDULABLE: Final = "still not schedulable"
"""The message of that plugin's PostFilter for pods with claims, before 1.37."""
_NO_STATE: Final = "not found"
"""The error of that plugin's PostFilter if a plugin before it rejects all nodes. It prevents preemption."""
_DEALLOCATED: Final = "deallocation of ResourceClaim completed"
"""Its message for a pod with an allocated claim that no pod uses, and that is not available on a node."""
_DELETED: Final = "deletion of ResourceClaim completed"
"""Its message for a pod for whose extended resources an earlier attempt has created a claim."""
_MAX_NOTE: Final = 1024
"""The maximum length of an Event's note."""


class SchedulingFailure(Struct, frozen=True, kw_only=True):
    """Why a pod is not scheduled, and the preemption that helps."""

    message: str
    """The message of the pod's condition and of the event FailedScheduling."""
    candidate: Candidate | None = None
    unused_claim: ReadOnlyTree | None = None
    """The claim that is deallocated, because it prevents the pod from running."""
    stale_claim: ReadOnlyTree | None = None
    """The claim for extended resources that is deleted, because an earlier attempt has created it."""
    keeps_nomination: bool = False
    """Whether `nominatedNodeName` stays as it is: the pod may not preempt others now."""

    @property
    def note(self) -> str:
        """The message as an Event may have it; upstream shortens it, too."""
        return self.message if len(self.message) <= _MAX_NOTE else f"{self.message[: _MAX_NOTE - 4]} ..."


def may_preempt(snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile) -> bool:
    """Return whether a preemption is tried for a pod. As upstream: only a FitError, which needs nodes, leads to it."""
    if not snapshot.nodes or feasible_nodes.is_error or profile.preemption is None:
        return False
    return not _lacks_state(snapshot, feasible_nodes, profile)


def _lacks_state(snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile) -> bool:
    """Return whether a plugin before DynamicResources rejected all nodes, so that its PostFilter fails."""
    rejection = feasible_nodes.prefilter_rejection
    return (
        rejection is not None
        and rejection.plugin != DYNAMIC_RESOURCES
        and _has_device_plugin(snapshot, profile)
    )


def _has_device_plugin(snapshot: ClusterSnapshot, profile: Profile) -> bool:
    return profile.allocates_devices and snapshot.gates.is_on("DynamicResourceAllocation")


def failure_of(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible_nodes: FeasibleNodes,
    preemption: Preemption,
    profile: Profile = DEFAULT_PROFILE,
) -> SchedulingFailure:
    """Return what follows, after a preemption was tried if `may_preempt` says so."""
    message = diagnosis(feasible_nodes, len(snapshot.nodes))
    if not snapshot.nodes or feasible_nodes.is_error:
        return SchedulingFailure(message=message)
    if _lacks_state(snapshot, feasible_nodes, profile):
        return SchedulingFailure(message=f"{message} {_NO_STATE}", keeps_nomination=True)
    has_claims = feasible_nodes.prefilter_rejection is None and profile.allocates_devices
    claims = _claims(pod, snapshot) if has_claims else None
    unused_claim = None if claims is None else _unused_claim(claims, snapshot, feasible_nodes)
    stale_claim = claims.stale if claims is not None and unused_claim is None else None
    candidate = preemption.best
    if candidate is not None:
        if not snapshot.gates.is_before("1.37"):
            victims = f"preempting {len(candidate.victims)} victims"
            message += f" preemption: found a potential placement for pod on node {candidate.node}, {victims}"
        return SchedulingFailure(
            message=message, candidate=candidate, unused_claim=unused_claim, stale_claim=stale_claim
        )
    reasons = [f"preemption: {preemption.problem}"] if preemption.problem else []
    if unused_claim is not None:
        reasons.insert(0, _DEALLOCATED)
    elif stale_claim is not None:
        reasons.insert(0, _DELETED)
    elif snapshot.gates.is_before("1.37") and _has_device_plugin(snapshot, profile):
        reasons.insert(0, _NO_CLAIMS_TO_DEALLOCATE if claims is None else _STILL_NOT_SCHEDULABLE)
    if preemption.is_error:
        del reasons[:-1]
    return SchedulingFailure(
        message=" ".join([message, ", ".join(reasons)]) if reasons else message,
        unused_claim=unused_claim,
        stale_claim=stale_claim,
        keeps_nomination=preemption.keeps_nomination,
    )


def _claims(pod: PodInfo, snapshot: ClusterSnapshot) -> "DeviceClaims | None":
    """Return the claims of a pod; None if it has none."""
    devices = devices_for(pod, snapshot)
    if devices is None:
        return None
    from .devices.claims import (  # noqa: PLC0415 - few pods need it
        DeviceClaims,
    )

    claims = DeviceClaims.of(pod, devices)
    return None if claims.is_empty else claims


def _unused_claim(
    claims: "DeviceClaims", snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes
) -> ReadOnlyTree | None:
    """Return an allocated claim that is not available on a node that the pod could use otherwise, and that no other pod uses."""
    from .filters.devices import (  # noqa: PLC0415 - few pods need it
        NOT_ON_NODE,
        unavailable_claims,
    )

    for node in snapshot.nodes:
        rejection = feasible_nodes.rejections[node.name]
        if (rejection.plugin, rejection.reasons) != (DYNAMIC_RESOURCES, NOT_ON_NODE.reasons):
            continue
        for claim in unavailable_claims(claims, node):
            if not {consumer["uid"] for consumer in reserved_for(claim)} - {claims.pod.uid}:
                return claim
    return None

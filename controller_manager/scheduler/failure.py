"""What follows if no node is feasible for a pod: a preemption, or only a message. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.scheduler.choice import FeasibleNodes, diagnosis
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.preemption import INELIGIBLE, Candidate, preempt
from mockube.controller_manager.scheduler.profile import DYNAMIC_RESOURCES
from mockube.controller_manager.workloads.device_claims import allocation, reserved_for
from mockube.controller_manager.workloads.node_selectors import selects

_NO_CLAIMS_TO_DEALLOCATE: Final = "no new claims to deallocate"
"""The message of the DynamicResources plugin's PostFilter for pods without claims, before 1.37."""
_STILL_NOT_SCHEDULABLE: Final = "still not schedulable"
"""The message of that plugin's PostFilter for pods with claims, before 1.37."""
_NO_STATE: Final = "not found"
"""The error of that plugin's PostFilter if a plugin before it rejects all nodes. It prevents preemption."""
_DEALLOCATED: Final = "deallocation of ResourceClaim completed"
"""Its message for a pod with an allocated claim that no pod uses, and that is not available on a node."""
_MAX_NOTE: Final = 1024
"""The maximum length of an Event's note."""


class SchedulingFailure(Struct, frozen=True, kw_only=True):
    """Why a pod is not scheduled, and the preemption that helps."""

    message: str
    """The message of the pod's condition and of the event FailedScheduling."""
    candidate: Candidate | None = None
    unused_claim: ReadOnlyTree | None = None
    """The claim that is deallocated, because it prevents the pod from running."""
    keeps_nomination: bool = False
    """Whether `nominatedNodeName` stays as it is: the pod may not preempt others now."""

    @property
    def note(self) -> str:
        """The message as an Event may have it; upstream shortens it, too."""
        return self.message if len(self.message) <= _MAX_NOTE else f"{self.message[: _MAX_NOTE - 4]} ..."


def failure_of(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, budgets: Sequence[ReadOnlyTree]
) -> SchedulingFailure:
    message = diagnosis(feasible_nodes, len(snapshot.nodes))
    if not snapshot.nodes or feasible_nodes.is_error:
        return SchedulingFailure(message=message)
    rejection = feasible_nodes.prefilter_rejection
    has_device_plugin = snapshot.gates.is_on("DynamicResourceAllocation")
    if rejection is not None and rejection.plugin != DYNAMIC_RESOURCES and has_device_plugin:
        return SchedulingFailure(message=f"{message} {_NO_STATE}", keeps_nomination=True)
    outcome = preempt(pod, snapshot, feasible_nodes, budgets)
    unused_claim = _unused_claim(pod, snapshot, feasible_nodes) if rejection is None else None
    if isinstance(outcome, Candidate):
        if not snapshot.gates.is_before("1.37"):
            victims = f"preempting {len(outcome.victims)} victims"
            message += f" preemption: found a potential placement for pod on node {outcome.node}, {victims}"
        return SchedulingFailure(message=message, candidate=outcome, unused_claim=unused_claim)
    reasons = [f"preemption: {outcome}"]
    if unused_claim is not None:
        reasons.insert(0, _DEALLOCATED)
    elif snapshot.gates.is_before("1.37") and has_device_plugin:
        has_claims = pod.spec.get("resourceClaims") and rejection is None
        reasons.insert(0, _STILL_NOT_SCHEDULABLE if has_claims else _NO_CLAIMS_TO_DEALLOCATE)
    return SchedulingFailure(
        message=f"{message} {', '.join(reasons)}",
        unused_claim=unused_claim,
        keeps_nomination=outcome in INELIGIBLE,
    )


def _unused_claim(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes
) -> ReadOnlyTree | None:
    """Return an allocated claim that is not available on a node that the pod could use otherwise, and that no other pod uses."""
    if snapshot.devices is None or not pod.spec.get("resourceClaims"):
        return None
    from mockube.controller_manager.scheduler.devices.claims import claims_of  # noqa: PLC0415 - few pods need it

    nodes = [
        node for node in snapshot.nodes if feasible_nodes.rejections[node.name].plugin == DYNAMIC_RESOURCES
    ]
    for claim in claims_of(pod.view, snapshot.devices.claims):
        selector = (allocation(claim) or {}).get("nodeSelector")
        users = {consumer["uid"] for consumer in reserved_for(claim)} - {pod.view.uid}
        if selector is not None and not users and not all(selects(selector, node.node) for node in nodes):
            return claim
    return None

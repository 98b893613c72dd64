"""The status of a pod that a kubelet evicts from its node.

Pure. Upstream: pkg/kubelet/eviction.
"""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree

EVICTED: Final = "Evicted"
GRACE_SECONDS: Final = 1.0
"""The time that an evicted pod has to end: immediateEvictionGracePeriodSeconds."""


class Eviction(Struct, frozen=True):
    at: datetime
    message: str
    is_disruption: bool = False
    """Whether the pod is a victim of a lack of the node, and not of its own use of the disk: it gets a condition that says so."""


def evicted_status(pod: ReadOnlyTree, status: ReadOnlyTree, eviction: Eviction) -> dict[str, Any]:
    """Return the status of a stopped pod with the reason of its eviction."""
    evicted = {**status, "reason": EVICTED, "message": eviction.message}
    if not eviction.is_disruption:
        return evicted
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": eviction.message,
        "observedGeneration": meta.generation(pod),
    }
    return {**evicted, "conditions": conditions.set_condition([*status["conditions"]], target, eviction.at)}

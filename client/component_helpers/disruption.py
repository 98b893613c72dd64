"""The pod condition DisruptionTarget, with the reason for which a controller is about to delete the pod."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_DISRUPTION_TARGET

OF_DELETED_NODE: Final = ("DeletionByPodGC", "PodGC: node no longer exists")
"""The reason and the message of the condition of pods whose node is gone."""


def disruption_status(
    pod: ReadOnlyTree, reason: str, message: str, now: datetime, generation: int | None = None
) -> dict[str, Any]:
    """Return a strategic merge patch of the pod's status; empty if the pod already has the condition."""
    condition: dict[str, object] = {"type": CONDITION_DISRUPTION_TARGET, "status": "True"}
    if generation is not None:
        condition["observedGeneration"] = generation
    condition |= {"reason": reason, "message": message}
    if conditions.has_condition(pod, condition):
        return {}
    all_conditions = conditions.set_condition(conditions.of(pod), condition, now)
    return {
        "$setElementOrder/conditions": [{"type": each["type"]} for each in all_conditions],
        "conditions": [each for each in all_conditions if each["type"] == CONDITION_DISRUPTION_TARGET],
    }

"""Match tolerations of pods with taints of nodes. Pure. Upstream: component-helpers/scheduling/corev1."""

from collections.abc import Collection, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree

NO_SCHEDULE: Final = "NoSchedule"
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}


def tolerates(spec: ReadOnlyTree, taint: ReadOnlyTree) -> bool:
    return any(_tolerates(toleration, taint) for toleration in spec.get("tolerations") or ())


def find_untolerated_taint(
    spec: ReadOnlyTree, taints: Sequence[ReadOnlyTree], effects: Collection[str]
) -> ReadOnlyTree | None:
    """Return the first taint with one of these effects that the pod does not tolerate."""
    return next(
        (taint for taint in taints if taint["effect"] in effects and not tolerates(spec, taint)), None
    )


def _tolerates(toleration: ReadOnlyTree, taint: ReadOnlyTree) -> bool:
    """Return whether a toleration matches a taint. Absent fields match everything, but an absent key needs `Exists`."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key")
    if key and key != taint["key"]:
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        case "Gt":
            return _compare(taint, toleration, above=True)
        case "Lt":
            return _compare(taint, toleration, above=False)
        case _:
            return False


def _compare(taint: ReadOnlyTree, toleration: ReadOnlyTree, *, above: bool) -> bool:
    value, threshold = int_or_none(taint.get("value") or ""), int_or_none(toleration.get("value") or "")
    if value is None or threshold is None:
        return False
    return value > threshold if above else value < threshold

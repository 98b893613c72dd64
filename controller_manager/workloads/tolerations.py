"""Taints of nodes, and what tolerates them. Pure. Upstream: component-helpers/scheduling/corev1."""

from collections.abc import Collection, Sequence
from typing import Final

from controller_manager.runtime.resource import Tree

NO_SCHEDULE: Final = "NoSchedule"
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}


def tolerates(spec: Tree, taint: Tree) -> bool:
    return any(_tolerates(one, taint) for one in spec.get("tolerations") or ())


def untolerated(spec: Tree, taints: Sequence[Tree], effects: Collection[str]) -> Tree | None:
    """The first of these effects that the pod does not tolerate."""
    return next(
        (taint for taint in taints if taint["effect"] in effects and not tolerates(spec, taint)), None
    )


def _tolerates(toleration: Tree, taint: Tree) -> bool:
    """What a toleration leaves out matches everything; without a key only the operator Exists does."""
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
            return _compared(taint, toleration, above=True)
        case "Lt":
            return _compared(taint, toleration, above=False)
        case _:
            return False


def _compared(taint: Tree, toleration: Tree, *, above: bool) -> bool:
    try:
        has, wants = int(taint.get("value") or ""), int(toleration.get("value") or "")
    except ValueError:
        return False
    return has > wants if above else has < wants

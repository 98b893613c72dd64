"""How long a pod tolerates the taints that would drive it out.

Pure.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from controller_manager.runtime.resource import Tree

AT_ONCE: Final = timedelta(0)
NO_EXECUTE: Final = "NoExecute"


def no_execute_taints(node: Tree) -> list[Tree]:
    found = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in found if taint["effect"] == NO_EXECUTE]


def stay(taints: Sequence[Tree], tolerations: Sequence[Tree]) -> timedelta | None:
    """How long a pod may stay; None for as long as it wants."""
    used: list[Tree] = []
    for taint in taints:
        # The first toleration that fits is the one that counts.
        fitting = next((one for one in tolerations if tolerates(one, taint)), None)
        if fitting is None:
            return AT_ONCE
        used.append(fitting)
    spans = [one["tolerationSeconds"] for one in used if one.get("tolerationSeconds") is not None]
    return timedelta(seconds=max(min(spans), 0)) if spans else None


def tolerates(toleration: Tree, taint: Tree) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return (toleration.get("value") or "") == (taint.get("value") or "")

"""The smallest patch that makes one pod's status another.

Pure. A strategic merge patch, as kubelets send it: conditions of other writers, which were set since the status was
read, stay as they are.
"""

from collections.abc import Sequence
from typing import Any

from apimachinery.patch import merge
from controller_manager.runtime.resource import Tree


def difference(old: Tree, new: Tree) -> dict[str, Any]:
    """What to write in `status`; empty if both are the same."""
    patch = merge.diff({**old, "conditions": None}, {**new, "conditions": None})
    conditions = _conditions(old.get("conditions") or (), new.get("conditions") or ())
    return {**patch, "conditions": conditions} if conditions else patch


def _conditions(old: Sequence[Tree], new: Sequence[Tree]) -> list[dict[str, Any]]:
    """Those that differ, with null for what they no longer say; and those that go."""
    before = {condition["type"]: condition for condition in old}
    after = {condition["type"] for condition in new}
    changed = [
        {
            **{field: None for field in before.get(condition["type"], ()) if field not in condition},
            **condition,
        }
        for condition in new
        if before.get(condition["type"]) != condition
    ]
    return changed + [{"$patch": "delete", "type": name} for name in before if name not in after]

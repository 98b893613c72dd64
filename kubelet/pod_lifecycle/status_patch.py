"""The patch from one pod status to the next. Pure."""

from collections.abc import Sequence
from typing import Any

from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.tree import ReadOnlyTree


def status_patch(old: ReadOnlyTree, new: ReadOnlyTree) -> dict[str, Any]:
    """Return the strategic merge patch of `status`; empty if both are the same."""
    patch = json_merge.diff({**old, "conditions": None}, {**new, "conditions": None})
    conditions = _conditions_patch(old.get("conditions") or (), new.get("conditions") or ())
    return {**patch, "conditions": conditions} if conditions else patch


def _conditions_patch(old: Sequence[ReadOnlyTree], new: Sequence[ReadOnlyTree]) -> list[dict[str, Any]]:
    """Return the changed conditions, with null for each removed field, and a deletion for each removed condition."""
    before = {condition["type"]: condition for condition in old}
    after = {condition["type"] for condition in new}
    changed_conditions = [
        {
            **{field: None for field in before.get(condition["type"], ()) if field not in condition},
            **condition,
        }
        for condition in new
        if before.get(condition["type"]) != condition
    ]
    return changed_conditions + [{"$patch": "delete", "type": name} for name in before if name not in after]

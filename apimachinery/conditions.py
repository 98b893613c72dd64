"""Conditions in `status.conditions`: each type is True, False or Unknown, with a time and a reason."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .meta import with_value
from .timestamps import format_time
from .tree import ReadOnlyTree

Conditions = Sequence[ReadOnlyTree]


def of(obj: ReadOnlyTree) -> Conditions:
    return (obj.get("status") or {}).get("conditions") or ()


def get(obj: ReadOnlyTree, condition_type: str) -> ReadOnlyTree | None:
    return find(of(obj), condition_type)


def find(conditions: Conditions, condition_type: str) -> ReadOnlyTree | None:
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def without(conditions: Conditions, condition_type: str) -> Conditions:
    return [condition for condition in conditions if condition.get("type") != condition_type]


def status(obj: ReadOnlyTree, condition_type: str) -> str:
    """Return "True", "False" or "Unknown"; an absent condition is unknown."""
    condition = get(obj, condition_type)
    return condition["status"] if condition else "Unknown"


def is_true(obj: ReadOnlyTree, condition_type: str) -> bool:
    return status(obj, condition_type) == "True"


def is_false(obj: ReadOnlyTree, condition_type: str) -> bool:
    return status(obj, condition_type) == "False"


def has_condition(obj: ReadOnlyTree, condition: Mapping[str, Any]) -> bool:
    """Return whether the object has this condition with all these values."""
    present = get(obj, condition["type"])
    return present is not None and all(present.get(field) == value for field, value in condition.items())


_OPTIONAL_FIELDS = ("observedGeneration", "reason", "message")
"""The fields that are removed if the new condition does not have them."""


def set_condition(conditions: Conditions, condition: Mapping[str, Any], now: datetime) -> list[ReadOnlyTree]:
    """Return the list with the condition replaced, or appended if it is new.

    `lastTransitionTime` is when the status last changed: it stays if only other fields change.
    """
    transition_time = condition.get("lastTransitionTime") or format_time(now)
    old = find(conditions, condition["type"])
    if old is None:
        return [*conditions, {**condition, "lastTransitionTime": transition_time}]
    if old.get("status") == condition["status"]:
        transition_time = old.get("lastTransitionTime") or transition_time
    other_fields = {field: value for field, value in old.items() if field not in _OPTIONAL_FIELDS}
    new = {**other_fields, **condition, "lastTransitionTime": transition_time}
    return [new if present is old else present for present in conditions]


def with_condition(obj: ReadOnlyTree, condition: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the object with this condition set in its status."""
    return with_value(obj, ("status", "conditions"), set_condition(of(obj), condition, now))

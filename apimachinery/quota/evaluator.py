"""The interface of quota evaluators, the evaluator that only counts objects, and the scopes of a quota."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .amounts import ONE, Amounts

CREATE, UPDATE = "CREATE", "UPDATE"

_ALIASES: Final = {
    GroupResource("", name): name
    for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
"""The older names of object counts, from before every resource could be counted."""


class Evaluator:
    """The evaluator of one resource: computes the usage of its objects."""

    def __init__(self, resource: GroupResource) -> None:
        self.resource = resource
        name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
        self.count_name = f"count/{name}"

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        """Return the resource names that this evaluator tracks (MatchingResources)."""
        raise NotImplementedError

    def usage(self, tree: ReadOnlyTree, now: datetime) -> Amounts:
        """Return the usage of an object."""
        raise NotImplementedError

    def handles(self, operation: str, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree | None) -> bool:
        """Return whether a write can increase the usage (Handles)."""
        raise NotImplementedError

    def is_in_scope(self, requirement: ReadOnlyTree, tree: ReadOnlyTree) -> bool:  # noqa: ARG002 - most are in none
        return False

    def problem(self, required: Iterable[str], tree: ReadOnlyTree) -> str:  # noqa: ARG002 - most need nothing
        """Return an error that names the required resources which the object does not declare (Constraints)."""
        return ""

    def may_release_quota(self, old: ReadOnlyTree, new: ReadOnlyTree, now: datetime) -> bool:  # noqa: ARG002 - most never do
        """Return whether an update may have decreased the usage, so that the quota must be recalculated."""
        return False


class ObjectCount(Evaluator):
    """The evaluator of a resource of which only the objects are counted."""

    def __init__(self, resource: GroupResource) -> None:
        super().__init__(resource)
        alias = _ALIASES.get(resource)
        self._usage = dict.fromkeys([self.count_name, *([alias] if alias else [])], ONE)

    def matching_resources(self, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if name in self._usage]

    def usage(self, _tree: ReadOnlyTree, _now: datetime) -> Amounts:
        return self._usage

    def handles(
        self, operation: str, subresource: str, _new: ReadOnlyTree, _old: ReadOnlyTree | None
    ) -> bool:
        return operation == CREATE and not subresource


def is_selected(requirement: ReadOnlyTree, value: str) -> bool:
    """Return whether a requirement of a scope selector matches a value; "" stands for an absent value."""
    values, operator = requirement.get("values") or (), requirement.get("operator")
    if operator == "In":
        return bool(value) and value in values
    if operator == "NotIn":
        return not value or value not in values
    return bool(value) == (operator == "Exists")


def requirements_of(quota: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return the scopes and selector requirements of a quota. An object must match all of them to be counted."""
    spec = quota.get("spec") or {}
    scopes: list[ReadOnlyTree] = [
        {"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()
    ]
    return [*scopes, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]


def is_counted(evaluator: Evaluator, requirements: Iterable[ReadOnlyTree], tree: ReadOnlyTree) -> bool:
    return all(evaluator.is_in_scope(requirement, tree) for requirement in requirements)

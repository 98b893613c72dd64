"""What an evaluator of a resource answers, and the one that only counts objects."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quota.amounts import ONE, Amounts
from mockube.apimachinery.tree import ReadOnlyTree

CREATE, UPDATE = "CREATE", "UPDATE"

_ALIASES: Final = {
    GroupResource("", name): name
    for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
"""What objects of these were counted as before every resource could be counted."""


class Evaluator:
    """What objects of one resource use."""

    def __init__(self, resource: GroupResource) -> None:
        self.resource = resource
        name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
        self.count_name = f"count/{name}"

    def matching(self, names: Iterable[str]) -> Sequence[str]:
        """Those of the names that the resource is counted under."""
        raise NotImplementedError

    def usage(self, tree: ReadOnlyTree, now: datetime) -> Amounts:
        raise NotImplementedError

    def charges(self, operation: str, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree | None) -> bool:
        """Whether such a write may use more than before."""
        raise NotImplementedError

    def is_in_scope(self, requirement: ReadOnlyTree, tree: ReadOnlyTree) -> bool:  # noqa: ARG002 - most are in none
        return False

    def problem(self, required: Iterable[str], tree: ReadOnlyTree) -> str:  # noqa: ARG002 - most need nothing
        """Return the amounts that an object has to declare for these resources and does not."""
        return ""

    def frees(self, old: ReadOnlyTree, new: ReadOnlyTree, now: datetime) -> bool:  # noqa: ARG002 - most never do
        """Whether a change may have left something for others."""
        return False


class ObjectCount(Evaluator):
    """The evaluator of a resource whose objects are alike."""

    def __init__(self, resource: GroupResource) -> None:
        super().__init__(resource)
        alias = _ALIASES.get(resource)
        self._usage = dict.fromkeys([self.count_name, *([alias] if alias else [])], ONE)

    def matching(self, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if name in self._usage]

    def usage(self, _tree: ReadOnlyTree, _now: datetime) -> Amounts:
        return self._usage

    def charges(
        self, operation: str, subresource: str, _new: ReadOnlyTree, _old: ReadOnlyTree | None
    ) -> bool:
        return operation == CREATE and not subresource


def is_selected(requirement: ReadOnlyTree, value: str) -> bool:
    """Whether a requirement of a scope's selector takes a value; "" stands for none."""
    values, operator = requirement.get("values") or (), requirement.get("operator")
    if operator == "In":
        return bool(value) and value in values
    if operator == "NotIn":
        return not value or value not in values
    return bool(value) == (operator == "Exists")


def requirements_of(quota: ReadOnlyTree) -> list[ReadOnlyTree]:
    """All that an object must meet to be counted by a quota."""
    spec = quota.get("spec") or {}
    scopes: list[ReadOnlyTree] = [
        {"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()
    ]
    return [*scopes, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]


def is_counted(evaluator: Evaluator, requirements: Iterable[ReadOnlyTree], tree: ReadOnlyTree) -> bool:
    return all(evaluator.is_in_scope(requirement, tree) for requirement in requirements)

"""The rules of webhooks and policies: the row of a resource that they match, and the rows of a kind that objects name."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import Operation

Equivalents: TypeAlias = Callable[[Resource], Sequence[Resource]]
"""Returns all rows of the same objects, in other versions or under other names."""


def no_equivalents(_: Resource) -> Sequence[Resource]:
    return ()


def rows_of_kind(
    backend: Backend, equivalents: Equivalents, api_version: str, kind: str
) -> Sequence[Resource]:
    """Return the rows of a kind in a version; several resources may have the same kind."""
    group = api_version.rpartition("/")[0]
    return [
        row
        for stored in backend.rows.values()
        if (stored.group, stored.kind) == (group, kind)
        for row in equivalents(stored)
        if (row.api_version, row.kind) == (api_version, kind)
    ]


def row_of_rules(
    rules: Sequence[ReadOnlyTree],
    operation: Operation,
    own: Resource,
    subresource: str,
    equivalents: Equivalents,
) -> Resource | None:
    """Return the row that a rule matches; all rules are tried with the resource itself before its equivalents."""
    if any(_matches(rule, operation, own, subresource) for rule in rules):
        return own
    others = [row for row in equivalents(own) if row is not own] if rules else []
    return next(
        (row for rule in rules for row in others if _matches(rule, operation, row, subresource)), None
    )


def _matches(rule: ReadOnlyTree, operation: Operation, row: Resource, subresource: str) -> bool:
    scope = rule.get("scope") or "*"
    return (
        (scope == "*" or (scope == "Namespaced") == row.namespaced)
        and _is_listed(rule.get("operations"), operation.value)
        and _is_listed(rule.get("apiGroups"), row.group)
        and _is_listed(rule.get("apiVersions"), row.version)
        and any(_names(resource, row.name, subresource) for resource in rule.get("resources") or ())
    )


def _is_listed(items: Sequence[str] | None, value: str) -> bool:
    return any(item in ("*", value) for item in items or ())


def _names(pattern: str, resource: str, subresource: str) -> bool:
    resource_pattern, _, subresource_pattern = pattern.partition("/")
    return resource_pattern in ("*", resource) and subresource_pattern in ("*", subresource)

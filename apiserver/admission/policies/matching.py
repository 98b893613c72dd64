"""Match a write with the rules and selectors of policies and bindings."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mockube.apimachinery import labels, meta, status
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

Equivalents: TypeAlias = Callable[[Resource], Sequence[Resource]]
"""Returns all rows of the same objects, in other versions or under other names."""


def matched_row(
    resources: ReadOnlyTree, backend: Backend, attributes: AdmissionAttributes, equivalents: Equivalents
) -> Resource | None:
    """Return the row that matchConstraints or matchResources match, the write's own or an equivalent one; None if none."""
    problem = None
    try:
        if not _selects_namespace(resources.get("namespaceSelector") or {}, backend, attributes):
            return None
    except ApiError as error:
        problem = error  # raised only if everything else matches
    selector = labels.from_label_selector(resources.get("objectSelector") or {})
    trees = (attributes.object, attributes.old)
    if not selector.empty and not any(tree and selector.matches(meta.labels(tree)) for tree in trees):
        return None
    others = equivalents if resources.get("matchPolicy") == "Equivalent" else _no_equivalents
    if _row_of_rules(resources.get("excludeResourceRules") or (), attributes, others) is not None:
        return None
    rules = resources.get("resourceRules")
    row = _row_of_rules(rules, attributes, others) if rules else attributes.resource
    if row is not None and problem is not None:
        raise problem
    return row


def _selects_namespace(selector: ReadOnlyTree, backend: Backend, attributes: AdmissionAttributes) -> bool:
    parsed_selector = labels.from_label_selector(selector)
    if parsed_selector.empty:
        return True
    current_labels = namespace_labels(backend, attributes)
    return current_labels is None or parsed_selector.matches(current_labels)


def namespace_labels(backend: Backend, attributes: AdmissionAttributes) -> Mapping[str, str] | None:
    """Return the labels of the write's namespace; None for cluster-scoped objects."""
    name = attributes.namespace
    if attributes.resource.group_resource == NAMESPACES:
        if attributes.object is not None and not attributes.subresource:
            return meta.labels(attributes.object)
        name = attributes.name
    if not name:
        return None
    stored = backend.find_cached(NAMESPACES, "", name)
    if stored is None:
        raise status.not_found(NAMESPACES, name)
    return stored.labels


def _no_equivalents(_: Resource) -> Sequence[Resource]:
    return ()


def _row_of_rules(
    rules: Sequence[ReadOnlyTree], attributes: AdmissionAttributes, equivalents: Equivalents
) -> Resource | None:
    """Return the row that a rule matches; all rules are tried with the resource itself before its equivalents."""
    own = attributes.resource
    if any(_matches(rule, attributes, own) for rule in rules):
        return own
    others = [row for row in equivalents(own) if row is not own] if rules else []
    return next((row for rule in rules for row in others if _matches(rule, attributes, row)), None)


def _matches(rule: ReadOnlyTree, attributes: AdmissionAttributes, row: Resource) -> bool:
    scope, names = rule.get("scope") or "*", rule.get("resourceNames")
    return (
        (scope == "*" or (scope == "Namespaced") == row.namespaced)
        and _is_listed(rule.get("operations"), attributes.operation.value)
        and _is_listed(rule.get("apiGroups"), row.group)
        and _is_listed(rule.get("apiVersions"), row.version)
        and any(
            _names(resource, row.name, attributes.subresource) for resource in rule.get("resources") or ()
        )
        and (not names or attributes.name in names)
    )


def _is_listed(items: Sequence[str] | None, value: str) -> bool:
    return any(item in ("*", value) for item in items or ())


def _names(pattern: str, resource: str, subresource: str) -> bool:
    resource_pattern, _, subresource_pattern = pattern.partition("/")
    return resource_pattern in ("*", resource) and subresource_pattern in ("*", subresource)

"""Which policies a write concerns."""

from collections.abc import Mapping, Sequence
from typing import Final

from mockube.apimachinery import labels, meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.attributes import Attributes
from mockube.apiserver.registry.backend import Backend

NAMESPACES: Final = GroupResource("", "namespaces")


def matches(resources: ReadOnlyTree, backend: Backend, attributes: Attributes) -> bool:
    """Whether matchConstraints or matchResources take a write; equivalent resources are not looked at."""
    if not _selects_namespace(resources.get("namespaceSelector") or {}, backend, attributes):
        return False
    selector = labels.from_label_selector(resources.get("objectSelector") or {})
    trees = (attributes.object, attributes.old)
    if not selector.empty and not any(tree and selector.matches(meta.labels(tree)) for tree in trees):
        return False
    if _any_rule(resources.get("excludeResourceRules"), attributes):
        return False
    rules = resources.get("resourceRules")
    return not rules or _any_rule(rules, attributes)


def _selects_namespace(selector: ReadOnlyTree, backend: Backend, attributes: Attributes) -> bool:
    wanted = labels.from_label_selector(selector)
    if wanted.empty:
        return True
    found = namespace_labels(backend, attributes)
    return found is None or wanted.matches(found)


def namespace_labels(backend: Backend, attributes: Attributes) -> Mapping[str, str] | None:
    """None for what is in no namespace."""
    name = attributes.namespace
    if attributes.target[:2] == ("", "namespaces"):
        if attributes.object is not None and not attributes.subresource:
            return meta.labels(attributes.object)
        name = attributes.name
    if not name:
        return None
    stored = backend.seen(NAMESPACES, "", name)
    if stored is None:
        raise status.not_found(NAMESPACES, name)
    return stored.labels


def _any_rule(rules: Sequence[ReadOnlyTree] | None, attributes: Attributes) -> bool:
    return any(_matches(rule, attributes) for rule in rules or ())


def _matches(rule: ReadOnlyTree, attributes: Attributes) -> bool:
    row, scope, names = attributes.resource, rule.get("scope") or "*", rule.get("resourceNames")
    return (
        (scope == "*" or (scope == "Namespaced") == row.namespaced)
        and _is_listed(rule.get("operations"), attributes.operation.value)
        and _is_listed(rule.get("apiGroups"), row.group)
        and _is_listed(rule.get("apiVersions"), row.version)
        and any(_names(one, row.name, attributes.subresource) for one in rule.get("resources") or ())
        and (not names or attributes.name in names)
    )


def _is_listed(items: Sequence[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _names(pattern: str, resource: str, subresource: str) -> bool:
    wanted, _, below = pattern.partition("/")
    return wanted in ("*", resource) and below in ("*", subresource)

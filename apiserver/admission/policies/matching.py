"""Match a write with the rules and selectors of policies and bindings."""

from collections.abc import Mapping, Sequence

from mockube.apimachinery import labels, meta, status
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.rules import Equivalents, no_equivalents, row_of_rules
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes


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
    others = equivalents if resources.get("matchPolicy") == "Equivalent" else no_equivalents
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


def _row_of_rules(
    rules: Sequence[ReadOnlyTree], attributes: AdmissionAttributes, equivalents: Equivalents
) -> Resource | None:
    """Return the row that a rule matches, of the rules that name no objects or this one."""
    named = [rule for rule in rules if attributes.name in (rule.get("resourceNames") or (attributes.name,))]
    operation, own, subresource = attributes.operation, attributes.resource, attributes.subresource
    return row_of_rules(named, operation, own, subresource, equivalents)

"""Match nodes by labels and names: `nodeSelector`, node selectors and required node affinity.

Pure. Upstream: component-helpers/scheduling/corev1/nodeaffinity.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.errors import FieldError, not_supported
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.labels import Operator, Requirement, check_requirement
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME

Matches = Callable[[ReadOnlyTree], bool]


def required_node_affinity(spec: ReadOnlyTree) -> Matches | None:
    """Return a function that matches the nodes on which a pod may run; None if all match."""
    node_selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not node_selector and required is None:
        return None

    def matches(node: ReadOnlyTree) -> bool:
        labels = meta.labels(node)
        selected = all(labels.get(key) == value for key, value in node_selector.items())
        return selected and (required is None or selects(required, node))

    return matches


def selects(selector: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    """Return whether a node selector matches a node: one of its terms must match."""
    return any(matches_term(term, node) for term in selector.get("nodeSelectorTerms") or ())


def matches_term(term: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    """Return whether a node selector term matches a node; an empty term matches none."""
    expressions: Sequence[ReadOnlyTree] = term.get("matchExpressions") or ()
    fields: Sequence[ReadOnlyTree] = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = meta.labels(node)
    field_values = {"metadata.name": meta.name(node)}
    return all(_matches(requirement, labels) for requirement in expressions) and all(
        _matches(requirement, field_values) for requirement in fields
    )


_LABEL_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


def check_expression(key: str, operator: str, values: Sequence[str], path: Path) -> list[FieldError]:
    """Return the errors of a requirement for labels of nodes; the API server does not check whether bounds are integers."""
    if operator not in _LABEL_OPERATORS:
        return [not_supported(path.child("operator"), operator, [*_LABEL_OPERATORS])]
    return check_requirement(Requirement(key, _LABEL_OPERATORS[operator], tuple(values)), path)


def required_names(selector: ReadOnlyTree | None) -> frozenset[str] | None:
    """Return the names of the only nodes that a selector can match; None if it may match nodes of any name."""
    return _required_values(selector, "matchFields", "metadata.name")


def required_hostnames(selector: ReadOnlyTree | None) -> frozenset[str] | None:
    """Return the hostname labels of the only nodes that a selector can match; None if it may match others."""
    return _required_values(selector, "matchExpressions", LABEL_HOSTNAME)


def _required_values(selector: ReadOnlyTree | None, requirements: str, key: str) -> frozenset[str] | None:
    if selector is None:
        return None
    found: set[str] = set()
    for term in selector.get("nodeSelectorTerms") or ():
        values = [
            frozenset(requirement.get("values") or ())
            for requirement in term.get(requirements) or ()
            if requirement["key"] == key and requirement["operator"] == "In"
        ]
        if not values:
            return None
        found |= frozenset.intersection(*values)
    return frozenset(found)


def _matches(expression: ReadOnlyTree, values: Mapping[str, str]) -> bool:
    value = values.get(expression["key"])
    return _OPERATORS[expression["operator"]](value, expression.get("values") or ())


def _is_greater(value: str | None, values: Sequence[str]) -> bool:
    return _compare(value, values, 1)


def _is_less(value: str | None, values: Sequence[str]) -> bool:
    return _compare(value, values, -1)


def _compare(value: str | None, values: Sequence[str], sign: int) -> bool:
    number, bound = int_or_none(value or ""), int_or_none(values[0] if values else "")
    return number is not None and bound is not None and (number - bound) * sign > 0


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": _is_greater,
    "Lt": _is_less,
}

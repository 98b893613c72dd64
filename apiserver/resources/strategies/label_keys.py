"""`matchLabelKeys`: selectors of a pod that are completed with what its own labels say, when it is created."""

from typing import Any

from apimachinery import meta
from apiserver.resources.strategy import Tree

PREFERRED, REQUIRED = (
    "preferredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
)
_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def complete_selectors(pod: Tree) -> None:
    """Of pod affinity and of topology spread constraints."""
    spec, labels = pod["spec"], dict(meta.labels(pod))
    changed: dict[str, Any] = {}
    if spec.get("affinity"):
        affinity = spec["affinity"]
        kinds = [kind for kind in ("podAffinity", "podAntiAffinity") if affinity.get(kind)]
        changed["affinity"] = affinity | {kind: _affinity(affinity[kind], labels) for kind in kinds}
    if spec.get("topologySpreadConstraints"):
        constraints = spec["topologySpreadConstraints"]
        changed["topologySpreadConstraints"] = [_completed(one, labels) for one in constraints]
    pod["spec"] = spec | changed


def _affinity(affinity: Tree, labels: dict[str, str]) -> Tree:
    changed: dict[str, Any] = {}
    if REQUIRED in affinity:
        changed[REQUIRED] = [_completed(term, labels) for term in affinity[REQUIRED]]
    if PREFERRED in affinity:
        changed[PREFERRED] = [
            weighted | {"podAffinityTerm": _completed(weighted["podAffinityTerm"], labels)}
            for weighted in affinity[PREFERRED]
        ]
    return affinity | changed


def _completed(term: Tree, labels: dict[str, str]) -> Tree:
    """A term without a selector selects nothing, and stays so."""
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in _OPERATORS.items()
        for key in term.get(field, ())
        if key in labels
    ]
    selector = term.get("labelSelector")
    if selector is None or not added:
        return term
    expressions = [*selector.get("matchExpressions", ()), *added]
    return term | {"labelSelector": selector | {"matchExpressions": expressions}}

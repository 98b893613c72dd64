"""Labels of nodes that have newer names, wherever nodes are selected by them."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from apimachinery import names
from apimachinery.paths import Path
from apiserver.validation.rules import Tree

DEPRECATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
        "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
        "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
        "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
        "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
        "app.kubernetes.io/created-by": "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
        "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
    }
)


def of_keys(selector: Mapping[str, Any] | None, path: Path) -> Iterator[str]:
    """Of a map by labels, each at its own path."""
    for key in sorted(DEPRECATED.keys() & (selector or {}).keys()):
        yield f"{path.key(key)}: {DEPRECATED[key]}"


def of_expressions(expressions: Iterable[Tree] | None, path: Path) -> Iterator[str]:
    for index, expression in enumerate(expressions or ()):
        key = expression.get("key", "")
        if key in DEPRECATED:
            yield f"{path.index(index).child('key')}: {key} is {DEPRECATED[key]}"


def of_terms(terms: Iterable[Tree] | None, path: Path) -> Iterator[str]:
    """Of terms that nodes must meet."""
    for index, term in enumerate(terms or ()):
        yield from of_expressions(term.get("matchExpressions"), path.index(index).child("matchExpressions"))


def of_preferences(terms: Iterable[Tree] | None, path: Path) -> Iterator[str]:
    """Of terms that nodes had better meet: nobody refuses values in them that no label can have."""
    for index, weighted in enumerate(terms or ()):
        expressions = (weighted.get("preference") or {}).get("matchExpressions") or ()
        for number, expression in enumerate(expressions):
            at = path.index(index).child("preference", "matchExpressions").index(number)
            key = expression.get("key", "")
            if key in DEPRECATED:
                yield f"{at.child('key')}: {key} is {DEPRECATED[key]}"
            for place, value in enumerate(expression.get("values") or ()):
                for problem in names.check_label_value(value):
                    yield f"{at.child('values').index(place)}: {value} is invalid, {problem}"


def of_selector(selector: Tree | None, path: Path) -> Iterator[str]:
    """Of a selector of labels that selects nodes."""
    if not selector:
        return
    yield from of_expressions(selector.get("matchExpressions"), path.child("matchExpressions"))
    for key in sorted(DEPRECATED.keys() & (selector.get("matchLabels") or {}).keys()):
        yield f"{path.child('matchLabels', key)}: {DEPRECATED[key]}"

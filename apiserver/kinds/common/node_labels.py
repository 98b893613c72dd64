"""Deprecated node labels, and the warnings of selectors that use them."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from mockube.apimachinery import names
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree

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


def key_warnings(selector: Mapping[str, Any] | None, path: Path) -> Iterator[str]:
    """Yield the warnings about the keys of a map of labels, each at its own path."""
    for key in sorted(DEPRECATED.keys() & (selector or {}).keys()):
        yield f"{path.key(key)}: {DEPRECATED[key]}"


def expression_warnings(expressions: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[str]:
    for index, expression in enumerate(expressions or ()):
        key = expression.get("key", "")
        if key in DEPRECATED:
            yield f"{path.index(index).child('key')}: {key} is {DEPRECATED[key]}"


def term_warnings(terms: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[str]:
    """Yield the warnings about the terms of a node selector."""
    for index, term in enumerate(terms or ()):
        yield from expression_warnings(
            term.get("matchExpressions"), path.index(index).child("matchExpressions")
        )


def preference_warnings(terms: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[str]:
    """Yield the warnings about preferred terms, whose values are not validated."""
    for index, weighted in enumerate(terms or ()):
        expressions = (weighted.get("preference") or {}).get("matchExpressions") or ()
        for number, expression in enumerate(expressions):
            expression_path = path.index(index).child("preference", "matchExpressions").index(number)
            key = expression.get("key", "")
            if key in DEPRECATED:
                yield f"{expression_path.child('key')}: {key} is {DEPRECATED[key]}"
            for value_index, value in enumerate(expression.get("values") or ()):
                for problem in names.check_label_value(value):
                    yield f"{expression_path.child('values').index(value_index)}: {value} is invalid, {problem}"


def selector_warnings(selector: ReadOnlyTree | None, path: Path) -> Iterator[str]:
    """Yield the warnings about a label selector that selects nodes."""
    if not selector:
        return
    yield from expression_warnings(selector.get("matchExpressions"), path.child("matchExpressions"))
    for key in sorted(DEPRECATED.keys() & (selector.get("matchLabels") or {}).keys()):
        yield f"{path.child('matchLabels', key)}: {DEPRECATED[key]}"

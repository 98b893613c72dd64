"""In which order pods are updated: strategies that several kinds have. The first thing wrong is told, and no more."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.labels.requirement import SelectorError
from apimachinery.labels.selector import from_label_selector
from apimachinery.paths import Path

Tree: TypeAlias = Mapping[str, Any]


def check_priorities(strategy: Tree | None, path: Path) -> Iterable[FieldError]:
    problem = _priority_problem(strategy or {})
    return (errors.required(path, problem),) if problem else ()


def check_scattering(terms: Sequence[Tree] | None, path: Path) -> Iterable[FieldError]:
    problem = _scatter_problem(terms or ())
    return (errors.required(path, problem),) if problem else ()


def _priority_problem(strategy: Tree) -> str:
    weights, orders = strategy.get("weightPriority") or (), strategy.get("orderPriority") or ()
    if weights and orders:
        return "only one of weightPriority and orderPriority can be used"
    for term in weights:
        if not 0 <= term["weight"] <= 100:
            return "weight must be valid number in the range 1-100"
        if not any(term["matchSelector"].values()):
            return "selector can not be empty"
        try:
            from_label_selector(term["matchSelector"])
        except SelectorError as error:
            return f"invalid selector {error}"
    return "" if all(term["orderedKey"] for term in orders) else "order key can not be empty"


def _scatter_problem(terms: Sequence[Tree]) -> str:
    seen = set()
    for term in terms:
        key, value = term["key"], term["value"]
        if not key:
            return "key should not be empty"
        if (key, value) in seen:
            return f"duplicated key={key} value={value}"
        seen.add((key, value))
    return ""

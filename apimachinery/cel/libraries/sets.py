"""Functions of lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import equals

DECLARED: Final = declare(
    """
    sets.contains list_sets_contains_list (list(T), list(T)) -> bool
    sets.equivalent list_sets_equivalent_list (list(T), list(T)) -> bool
    sets.intersects list_sets_intersects_list (list(T), list(T)) -> bool
    """
)


def _has_element(items: list[Any], element: Any) -> bool:
    return any(equals(element, item) for item in items)


def _contains(items: list[Any], subset: list[Any]) -> bool:
    return all(_has_element(items, element) for element in subset)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "list_sets_contains_list": _contains,
    "list_sets_equivalent_list": lambda left, right: _contains(left, right) and _contains(right, left),
    "list_sets_intersects_list": lambda left, right: any(_has_element(right, element) for element in left),
}

"""Functions of lists: those of Kubernetes, and those of cel-go's library of lists."""

import itertools
from collections.abc import Callable, Iterable
from functools import cmp_to_key, reduce
from typing import Any, Final

from mockube.apimachinery.cel import arithmetic, values
from mockube.apimachinery.cel.declarations import declare, merge
from mockube.apimachinery.cel.values import CelError, Duration, Uint

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: dict[str, Any] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_RUNTIME_NAMES = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
SORT_NAMES: Final = tuple(_RUNTIME_NAMES.get(name, name) for name in _COMPARABLE)


def _lines(names: Iterable[str], line: str) -> str:
    return "\n".join(line.format(t=name, r=_RUNTIME_NAMES.get(name, name)) for name in names)


_KUBERNETES: Final = declare(
    f"""
    {_lines(_COMPARABLE, "isSorted list_{t}_is_sorted_bool list({t}).() -> bool")}
    {_lines(_SUMMABLE, "sum list_{t}_sum_{t} list({t}).() -> {t}")}
    {_lines(_COMPARABLE, "max list_{t}_max_{t} list({t}).() -> {t}")}
    {_lines(_COMPARABLE, "min list_{t}_min_{t} list({t}).() -> {t}")}
    indexOf list_a_index_of_int list(A).(A) -> int
    lastIndexOf list_a_last_index_of_int list(A).(A) -> int
    """
)
EXTENSION: Final = declare(
    f"""
    slice list_slice list(T).(int, int) -> list(T)
    flatten list_flatten list(list(T)).() -> list(T)
    flatten list_flatten_int list(dyn).(int) -> list(dyn)
    {_lines(_COMPARABLE, "sort list_{r}_sort list({t}).() -> list({t})")}
    {_lines(_COMPARABLE, "@sortByAssociatedKeys list_{r}_sortByAssociatedKeys list(T).(list({t})) -> list(T)")}
    lists.range lists_range (int) -> list(int)
    reverse list_reverse list(T).() -> list(T)
    distinct list_distinct list(T).() -> list(T)
    """
)
"""The functions of cel-go."""
DECLARED: Final = merge(_KUBERNETES, EXTENSION)
_MAX_RANGE: Final = 10_000_000
"""Longer ranges exceed every cost limit."""


def _is_sorted(items: list[Any]) -> bool:
    return all(values.compare(a, b) <= 0 for a, b in itertools.pairwise(items))


def _sum(zero: Any) -> Callable[[list[Any]], Any]:
    return lambda items: reduce(arithmetic.add, items, zero)


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def reduce_items(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        extreme_item = items[0]
        for item in items[1:]:
            if values.compare(extreme_item, item) * sign < 0:
                extreme_item = item
        return extreme_item

    return reduce_items


def _index_of(items: list[Any], element: Any) -> int:
    return next((i for i, item in enumerate(items) if values.equals_if_comparable(item, element)), -1)


def _last_index_of(items: list[Any], element: Any) -> int:
    return next(
        (i for i in range(len(items) - 1, -1, -1) if values.equals_if_comparable(items[i], element)), -1
    )


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    kind = values.type_name(keys[0])
    if len(keys) > 1 and any(values.type_name(key) != kind for key in keys):
        raise CelError("list elements must have the same type")

    def by_key(left: int, right: int) -> int:
        return values.compare(keys[left], keys[right])

    order = sorted(range(len(items)), key=cmp_to_key(by_key))
    return [items[i] for i in order]


def _range(count: int) -> list[int]:
    if count > _MAX_RANGE:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    unique: list[Any] = []
    for item in items:
        if not any(values.equals(item, other) for other in unique):
            unique.append(item)
    return unique


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _COMPARABLE},
    **{f"list_{name}_sum_{name}": _sum(zero) for name, zero in _SUMMABLE.items()},
    **{f"list_{name}_max_{name}": _extreme("max", 1) for name in _COMPARABLE},
    **{f"list_{name}_min_{name}": _extreme("min", -1) for name in _COMPARABLE},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    **{f"list_{name}_sort": lambda items: _sort_by(items, items) for name in SORT_NAMES},
    **dict.fromkeys((f"list_{name}_sortByAssociatedKeys" for name in SORT_NAMES), _sort_by),
    "lists_range": _range,
    "list_reverse": lambda items: items[::-1],
    "list_distinct": _distinct,
}

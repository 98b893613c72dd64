"""Functions of optional values. The parser has their syntax, and the planner has `or` and `orValue`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.cel import values
from mockube.apimachinery.cel.comprehensions import GrowingMap
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, Duration, Optional, Timestamp

DECLARED: Final = declare(
    """
    optional.of optional_of (V) -> optional_type(V)
    optional.ofNonZeroValue optional_ofNonZeroValue (V) -> optional_type(V)
    optional.none optional_none () -> optional_type(V)
    value optional_value optional_type(V).() -> V
    hasValue optional_hasValue optional_type(V).() -> bool
    or optional_or_optional optional_type(V).(optional_type(V)) -> optional_type(V)
    orValue optional_orValue_value optional_type(V).(V) -> V
    _?._ select_optional_field (dyn, string) -> optional_type(V)
    _[?_] list_optindex_optional_int (list(V), int) -> optional_type(V)
    _[?_] optional_list_optindex_optional_int (optional_type(list(V)), int) -> optional_type(V)
    _[?_] map_optindex_optional_value (map(K, V), K) -> optional_type(V)
    _[?_] optional_map_optindex_optional_value (optional_type(map(K, V)), K) -> optional_type(V)
    _[_] optional_list_index_int (optional_type(list(V)), int) -> optional_type(V)
    _[_] optional_map_index_value (optional_type(map(K, V)), K) -> optional_type(V)
    last list_last list(V).() -> optional_type(V)
    first list_first list(V).() -> optional_type(V)
    optional.unwrap optional_unwrap (list(optional_type(V))) -> list(V)
    unwrapOpt optional_unwrapOpt list(optional_type(V)).() -> list(V)
    cel.@mapInsert @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
    cel.@mapInsert @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
    """
)


def _of_non_zero(value: Any) -> Optional:
    if type(value) is Timestamp:
        return values.NONE if value.nanoseconds == values.MIN_UNIX_TIME * values.SECOND else Optional(value)
    if type(value) is Duration:
        return Optional(value) if value.nanoseconds else values.NONE
    if type(value) is Optional:
        return Optional(value) if value.present else values.NONE
    if isinstance(value, (bool, int, float, str, bytes, list, dict)) or value is None:
        return Optional(value) if value else values.NONE
    return Optional(value)


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if type(item) is not Optional:
            raise CelError(f"value {values.format_value(item)} is not optional")
    return [item.value for item in items if item.present]


def _insert(target: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Add an entry to an accumulator in place, or to a copy of another map."""
    stored_key = values.map_key(key)
    if stored_key in target:
        raise CelError(f"insert failed: key {values.format_value(key)} already exists")
    if type(target) is not GrowingMap:
        return {**target, stored_key: value}
    target[stored_key] = value
    return target


def _insert_all(target: dict[Any, Any], entries: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in entries.items():
        target = _insert(target, values.from_map_key(key), value)
    return target


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "optional_of": Optional,
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_none": lambda: values.NONE,
    "optional_value": lambda optional: optional.value,
    "optional_hasValue": lambda optional: optional.present,
    "list_last": lambda items: Optional(items[-1]) if items else values.NONE,
    "list_first": lambda items: Optional(items[0]) if items else values.NONE,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}

"""The standard library: the declarations and implementations of the functions of every expression."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import contains_match

from . import arithmetic, conversions, times, values
from .declarations import declare
from .values import CelError, TypeValue

_COMPARISON_TYPES = (
    ("bool", "bool", "bool"),
    ("int64", "int", "int"),
    ("int64_double", "int", "double"),
    ("int64_uint64", "int", "uint"),
    ("uint64", "uint", "uint"),
    ("uint64_double", "uint", "double"),
    ("uint64_int64", "uint", "int"),
    ("double", "double", "double"),
    ("double_int64", "double", "int"),
    ("double_uint64", "double", "uint"),
    ("string", "string", "string"),
    ("bytes", "bytes", "bytes"),
    ("timestamp", "timestamp", "timestamp"),
    ("duration", "duration", "duration"),
)
_RELATIONS: dict[str, tuple[str, Callable[[int], bool]]] = {
    "_<_": ("less", lambda order: order < 0),
    "_<=_": ("less_equals", lambda order: order <= 0),
    "_>_": ("greater", lambda order: order > 0),
    "_>=_": ("greater_equals", lambda order: order >= 0),
}
_COMPARISONS = "\n".join(
    f"{operator} {name}_{suffix} ({left}, {right}) -> bool"
    for operator, (name, _) in _RELATIONS.items()
    for suffix, left, right in _COMPARISON_TYPES
)
_TIME_GETTERS = "\n".join(
    f"{function} timestamp_to_{name} timestamp.() -> int\n{function} timestamp_to_{zoned} timestamp.(string) -> int"
    + (f"\n{function} duration_to_{name} duration.() -> int" if name in times.DURATION_UNITS else "")
    for function, (name, zoned) in times.GETTERS.items()
)
DECLARED: Final = declare(
    f"""
    _?_:_ conditional (bool, A, A) -> A
    _&&_ logical_and (bool, bool) -> bool
    _||_ logical_or (bool, bool) -> bool
    !_ logical_not (bool) -> bool
    @not_strictly_false not_strictly_false (bool) -> bool
    __not_strictly_false__ __not_strictly_false__ (bool) -> bool
    _==_ equals (A, A) -> bool
    _!=_ not_equals (A, A) -> bool
    _+_ add_bytes (bytes, bytes) -> bytes
    _+_ add_double (double, double) -> double
    _+_ add_duration_duration (duration, duration) -> duration
    _+_ add_duration_timestamp (duration, timestamp) -> timestamp
    _+_ add_timestamp_duration (timestamp, duration) -> timestamp
    _+_ add_int64 (int, int) -> int
    _+_ add_list (list(A), list(A)) -> list(A)
    _+_ add_string (string, string) -> string
    _+_ add_uint64 (uint, uint) -> uint
    _/_ divide_double (double, double) -> double
    _/_ divide_int64 (int, int) -> int
    _/_ divide_uint64 (uint, uint) -> uint
    _%_ modulo_int64 (int, int) -> int
    _%_ modulo_uint64 (uint, uint) -> uint
    _*_ multiply_double (double, double) -> double
    _*_ multiply_int64 (int, int) -> int
    _*_ multiply_uint64 (uint, uint) -> uint
    -_ negate_double (double) -> double
    -_ negate_int64 (int) -> int
    _-_ subtract_double (double, double) -> double
    _-_ subtract_duration_duration (duration, duration) -> duration
    _-_ subtract_int64 (int, int) -> int
    _-_ subtract_timestamp_duration (timestamp, duration) -> timestamp
    _-_ subtract_timestamp_timestamp (timestamp, timestamp) -> duration
    _-_ subtract_uint64 (uint, uint) -> uint
    {_COMPARISONS}
    _[_] index_list (list(A), int) -> A
    _[_] index_map (map(A, B), A) -> B
    @in in_list (A, list(A)) -> bool
    @in in_map (A, map(A, B)) -> bool
    in in_list (A, list(A)) -> bool
    in in_map (A, map(A, B)) -> bool
    _in_ in_list (A, list(A)) -> bool
    _in_ in_map (A, map(A, B)) -> bool
    size size_bytes (bytes) -> int
    size bytes_size bytes.() -> int
    size size_list (list(A)) -> int
    size list_size list(A).() -> int
    size size_map (map(A, B)) -> int
    size map_size map(A, B).() -> int
    size size_string (string) -> int
    size string_size string.() -> int
    type type (A) -> type(A)
    dyn to_dyn (A) -> dyn
    {conversions.DECLARATIONS}
    contains contains_string string.(string) -> bool
    endsWith ends_with_string string.(string) -> bool
    startsWith starts_with_string string.(string) -> bool
    matches matches (string, string) -> bool
    matches matches_string string.(string) -> bool
    {_TIME_GETTERS}
    """
)


def _comparison(operator: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def compare_values(left: Any, right: Any) -> bool:
        if type(left) not in values.ORDERED:
            raise CelError(f"no such overload: {operator}")
        return holds(values.compare(left, right))

    return compare_values


def contains(element: Any, container: Any) -> bool:
    """Return whether a list contains an element, or a map a key."""
    if isinstance(container, list):
        return any(values.equals_if_comparable(element, item) for item in container)
    if isinstance(container, dict):
        return values.map_key(element) in container
    raise CelError("no such overload")


def matches(text: Any, pattern: Any) -> bool:
    if type(text) is not str:
        raise CelError("no such overload: matches")
    if type(pattern) is not str:
        raise CelError("no such overload")
    try:
        return contains_match(pattern, text)
    except RegexpError as error:
        raise CelError(str(error)) from error


def _negate(value: Any) -> bool:
    if type(value) is not bool:
        raise CelError("no such overload" if type(value) in values.RECEIVERS else "no such overload: !_")
    return not value


def _time_function(name: str) -> Callable[..., Any]:
    def get(*args: Any) -> int:
        try:
            return times.get(name, *args)
        except times.InvalidTimeAccess:
            raise CelError(f"no such overload: {name}({', '.join(map(values.type_name, args))})") from None

    return get


SINGLETONS: Final[dict[str, Callable[..., Any]]] = {
    "!_": _negate,
    "-_": arithmetic.negate,
    "_+_": arithmetic.add,
    "_-_": arithmetic.subtract,
    "_*_": arithmetic.multiply,
    "_/_": arithmetic.divide,
    "_%_": arithmetic.modulo,
    **{operator: _comparison(operator, holds) for operator, (_, holds) in _RELATIONS.items()},
    "@in": contains,
    "in": contains,
    "_in_": contains,
    "size": values.size,
    "type": lambda value: TypeValue(values.type_name(value)),
    "dyn": lambda value: value,
    "matches": matches,
    **{name: _time_function(name) for name in times.GETTERS},
}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "contains_string": lambda text, part: part in text,
    "ends_with_string": lambda text, end: text.endswith(end),
    "starts_with_string": lambda text, start: text.startswith(start),
    **conversions.FUNCTIONS,
}
UNGUARDED_OVERLOADS: Final = frozenset(("contains_string", "ends_with_string", "starts_with_string"))
"""Overloads whose errors do not name the function and the types."""

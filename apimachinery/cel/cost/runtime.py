"""The actual cost of calls, by the sizes of their arguments and results."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube.apimachinery.cel.libraries.addresses import CIDR, IP
from mockube.apimachinery.cel.libraries.formats import NamedFormat
from mockube.apimachinery.cel.libraries.lists import SORT_NAMES
from mockube.apimachinery.cel.values import Opaque, Optional, from_map_key

from . import ranges

CallCost = int | Callable[[Sequence[Any], Any], int]


def size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if type(value) is Optional and value.present:
        return size(value.value)
    return value.size if isinstance(value, (IP, CIDR)) else 1


def _string_cost(count: float) -> int:
    return math.ceil(count * ranges.STRING_FACTOR)


def _first_argument_cost(args: Sequence[Any], _result: Any) -> int:
    return _string_cost(size(args[0]))


def _first_argument_twice_cost(args: Sequence[Any], _result: Any) -> int:
    return math.ceil(size(args[0]) * 2 * ranges.STRING_FACTOR)


def _join_cost(_args: Sequence[Any], result: Any) -> int:
    return math.ceil(size(result) * 2 * ranges.STRING_FACTOR)


def _match_cost(args: Sequence[Any], _result: Any) -> int:
    return _string_cost(1.0 + size(args[0])) * math.ceil(size(args[1]) * ranges.REGEX_FACTOR)


def _contains_cost(args: Sequence[Any], _result: Any) -> int:
    return _string_cost(size(args[0])) * _string_cost(size(args[1]))


def _smaller_argument_cost(args: Sequence[Any], _result: Any) -> int:
    return _string_cost(min(size(args[0]), size(args[1])))


def _equality_cost(args: Sequence[Any], result: Any) -> int:
    return 1 if isinstance(args[0], Opaque) else _smaller_argument_cost(args, result)


def _both_arguments_cost(args: Sequence[Any], _result: Any) -> int:
    return _string_cost(size(args[0]) + size(args[1]))


def _in_list_cost(args: Sequence[Any], _result: Any) -> int:
    return size(args[1])


def traversal(value: Any) -> int:
    """Return the cost of traversing a value with all of its elements."""
    if isinstance(value, (str, bytes)):
        return int(len(value.encode() if isinstance(value, str) else value) * ranges.STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(from_map_key(key)) + traversal(item) for key, item in value.items())
    return 1


def _traversal_cost(args: Sequence[Any], _result: Any) -> int:
    return traversal(args[0])


def _selector_cost(args: Sequence[Any], _result: Any) -> int:
    length = size(args[1])
    requirements = math.ceil(length * 0.5)
    return ranges.LIST_BASE + _string_cost(length) + requirements * (ranges.LIST_BASE + ranges.STRUCT_BASE)


def _contains_ip_cost(args: Sequence[Any], _result: Any) -> int:
    cost = _string_cost(2 * size(args[0]))
    return cost + _string_cost(size(args[1])) if type(args[1]) is str else cost


def _contains_cidr_cost(args: Sequence[Any], _result: Any) -> int:
    cost = _string_cost(2 * size(args[0])) + _string_cost(size(args[0])) + 1
    return cost + _string_cost(size(args[1])) if type(args[1]) is str else cost


def _validation_cost(args: Sequence[Any], _result: Any) -> int:
    pattern = args[0].regex_size if isinstance(args[0], NamedFormat) else 0
    return _string_cost(1.0 + size(args[1])) * math.ceil(pattern * ranges.REGEX_FACTOR)


def _allocation_cost(factor: float, count: int) -> int:
    return int(count * factor) + 1 + ranges.LIST_BASE


def _result_allocation_cost(_args: Sequence[Any], result: Any) -> int:
    return _allocation_cost(1, size(result))


def _flatten_cost(args: Sequence[Any], _result: Any) -> int:
    return _allocation_cost(args[1] if len(args) == 2 else 1, size(args[0]))


def _pairwise_cost(items: Sequence[Any]) -> int:
    factor = 2 + ranges.STRING_FACTOR if items and isinstance(items[0], (str, bytes)) else 2.0
    return _allocation_cost(factor, len(items) ** 2)


def _sort_cost(args: Sequence[Any], _result: Any) -> int:
    return _pairwise_cost(args[0])


def _sort_by_keys_cost(args: Sequence[Any], _result: Any) -> int:
    return _pairwise_cost(args[1])


def _sets_cost(factor: int) -> Callable[[Sequence[Any], Any], int]:
    return lambda args, _: 1 + size(args[0]) * size(args[1]) * factor


BY_FUNCTION: Final[dict[str, CallCost]] = {
    **dict.fromkeys(ranges.SIMPLE_FUNCTIONS, 1),
    "check": ranges.AUTHORIZATION_CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector_cost),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal_cost),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP"),
        _first_argument_cost,
    ),
    **dict.fromkeys(("isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first_argument_cost),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_argument_twice_cost),
    "join": _join_cost,
    **dict.fromkeys(("find", "findAll"), _match_cost),
    "containsIP": _contains_ip_cost,
    "containsCIDR": _contains_cidr_cost,
    "validate": _validation_cost,
}
_ORDERED_OVERLOADS = [
    f"{name}_{kind}"
    for name in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
]
MEASURED_ARGUMENTS: Final[dict[CallCost, tuple[int, str]]] = {
    _sort_cost: (0, "*types.Err is not traits.Lister: missing method Add"),
    _sort_by_keys_cost: (1, "*types.Err is not traits.Lister: missing method Add"),
    _flatten_cost: (1, "ref.Val is *types.Err, not types.Int"),
}
"""Arguments whose size upstream reads even if they are errors, and the message of the panic that this causes."""
BY_OVERLOAD: Final[dict[str, CallCost]] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _result_allocation_cost),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten_cost),
    "list_distinct": _sort_cost,
    **{f"list_{name}_sort": _sort_cost for name in SORT_NAMES},
    **{f"list_{name}_sortByAssociatedKeys": _sort_by_keys_cost for name in SORT_NAMES},
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets_cost(1)),
    "list_sets_equivalent_list": _sets_cost(2),
    "cidr_ip": 1,
}
"""Costs of overloads, which take precedence over those of functions."""
_STANDARD: dict[str, CallCost] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), _first_argument_cost
    ),
    **dict.fromkeys(("strings_quote", "string_format"), _first_argument_cost),
    "in_list": _in_list_cost,
    **dict.fromkeys((*_ORDERED_OVERLOADS, "not_equals"), _smaller_argument_cost),
    "equals": _equality_cost,
    **dict.fromkeys(("add_string", "add_bytes"), _both_arguments_cost),
    "matches_string": _match_cost,
    "contains_string": _contains_cost,
}


def call_cost(function: str, overload: str) -> CallCost:
    """Return the cost of a call; `overload` is empty if it is chosen at run time."""
    if overload in BY_OVERLOAD:
        return BY_OVERLOAD[overload]
    if function == "ip":
        return _first_argument_cost
    return BY_FUNCTION.get(function, _STANDARD.get(overload, 1))

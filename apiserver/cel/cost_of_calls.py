"""Estimates of the cost and result size of calls of Kubernetes' functions and of some of cel-go's libraries."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from mockube.apimachinery.cel.ast import Expr, Literal
from mockube.apimachinery.cel.cost import ranges
from mockube.apimachinery.cel.cost.ranges import EstimateRange
from mockube.apimachinery.cel.libraries.lists import SORT_NAMES
from mockube.apimachinery.cel.types import Type

_URL_TYPE, _FORMAT_TYPE = "kubernetes.URL", "kubernetes.NamedFormat"
_FORMAT_SIZE, _FORMAT_PATTERN_SIZE = 64, 128
_SIMPLE_TYPES = frozenset(
    (
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        *(f"kubernetes.authorization.{n}" for n in ("Authorizer", "PathCheck", "GroupCheck")),
        *(f"kubernetes.authorization.{n}" for n in ("ResourceCheck", "Decision")),
    )
)


class AstNode(NamedTuple):
    """An argument of a call: its type, the path of its value, and its size if that is known."""

    type: Type
    path: tuple[str, ...]
    size: EstimateRange | None
    expr: Expr | None = None


class Estimate(NamedTuple):
    """The cost of a call, and the size of its result if that is known."""

    cost: EstimateRange
    size: EstimateRange | None = None
    """The size of the result."""


class Sizes(Protocol):
    """Returns the size of the value at a path, by the limits of a schema."""

    def __call__(self, path: tuple[str, ...], /) -> EstimateRange | None: ...


class EstimatedCall(NamedTuple):
    """A call of one overload."""

    overload: str
    target: AstNode | None
    args: Sequence[AstNode]
    sizes: Sizes

    def size(self, node: AstNode) -> EstimateRange:
        return node.size or self.sizes(node.path) or ranges.UNKNOWN


def _unit_cost(_call: EstimatedCall) -> Estimate:
    return Estimate(ranges.ONE)


def _selector(call: EstimatedCall) -> Estimate:
    length = call.size(call.args[0])
    parsed = ranges.exact_range(ranges.LIST_BASE).plus(length.scale_by(ranges.STRING_FACTOR))
    return Estimate(parsed.plus(length.scale_by(0.5).scale_by(ranges.LIST_BASE + ranges.STRUCT_BASE)))


def _element(node: AstNode) -> AstNode | None:
    if not node.type.parameters:
        return None
    path = (*node.path, "@items") if node.path else ()
    return AstNode(node.type.parameters[0], path, None)


def _list_traversal(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    element = _element(call.target)
    if element is None:
        return Estimate(call.size(call.target).scale_by(ranges.STRING_FACTOR))
    cost = ranges.ONE
    if element.type.kind in ("string", "bytes"):
        cost = cost.plus(call.size(element).scale_by(ranges.STRING_FACTOR))
    return Estimate(call.size(call.target).times(cost))


def _read_argument(call: EstimatedCall) -> Estimate:
    return Estimate(call.size(call.args[0]).scale_by(ranges.STRING_FACTOR))


def _read_argument_sized(call: EstimatedCall) -> Estimate:
    size = call.size(call.args[0])
    return Estimate(size.scale_by(ranges.STRING_FACTOR), size)


def _read_target(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return Estimate(size.scale_by(ranges.STRING_FACTOR), size)


def _replace(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    size, old, new = call.size(call.target), call.size(call.args[0]), call.size(call.args[1])
    maximum, max_retained = 0, 0
    if old.low == 0:
        maximum, max_retained = min(size.high + 1, ranges.MAX_UINT64), size.high
    elif new.high <= old.low:
        max_retained = size.high
    else:
        maximum = math.ceil(float(size.high) / float(old.low))
    minimum, min_retained = 0, 0
    if old.high == 0:
        minimum, min_retained = min(size.low + 1, ranges.MAX_UINT64), size.low
    elif old.high <= new.low:
        min_retained = size.low
    else:
        minimum = math.ceil(float(size.low) / float(old.high))
    result = EstimateRange(minimum, maximum).times(new).plus(EstimateRange(min_retained, max_retained))
    return Estimate(size.scale_by(2 * ranges.STRING_FACTOR), result)


def _split_cost(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    maximum = size.high
    if len(call.args) > 1:
        count = call.args[1].expr
        if isinstance(count, Literal) and type(count.value) is int:
            maximum = count.value % (1 << 64)
    return Estimate(size.scale_by(2 * ranges.STRING_FACTOR), EstimateRange(0, maximum))


def _join(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    count = call.size(call.target)
    element = _element(call.target)
    size = count.times(call.size(element)) if element is not None else ranges.exact_range(0)
    if call.args:
        separators = EstimateRange(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(call.size(call.args[0]).times(separators))
    return Estimate(size.scale_by(ranges.STRING_FACTOR), size)


def _find(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    text = size.plus(ranges.ONE).scale_by(ranges.STRING_FACTOR)
    return Estimate(
        text.times(call.size(call.args[0]).scale_by(ranges.REGEX_FACTOR)), EstimateRange(0, size.high)
    )


def _ip(call: EstimatedCall) -> Estimate | None:
    if call.overload == "cidr_ip":
        return Estimate(ranges.ONE)
    return _read_argument(call) if call.args else None


def _read_argument_twice(call: EstimatedCall) -> Estimate:
    return Estimate(call.size(call.args[0]).scale_by(2 * ranges.STRING_FACTOR))


_ADDRESS = EstimateRange(4, 16)


def _contains_ip(call: EstimatedCall) -> Estimate:
    cost = _ADDRESS.plus(_ADDRESS).scale_by(ranges.STRING_FACTOR)
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(call.size(call.args[0]).scale_by(ranges.STRING_FACTOR))
    return Estimate(cost)


def _contains_cidr(call: EstimatedCall) -> Estimate:
    cost = (
        _ADDRESS.plus(_ADDRESS)
        .scale_by(ranges.STRING_FACTOR)
        .plus(_ADDRESS.scale_by(ranges.STRING_FACTOR))
        .plus(ranges.ONE)
    )
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.plus(call.size(call.args[0]).scale_by(ranges.STRING_FACTOR))
    return Estimate(cost)


def _validate(call: EstimatedCall) -> Estimate:
    size = call.size(call.args[0])
    return Estimate(size.scale_by(ranges.STRING_FACTOR).scale_by(_FORMAT_PATTERN_SIZE * ranges.REGEX_FACTOR))


def _equals(call: EstimatedCall) -> Estimate | None:
    left, right = call.args
    if left.type != right.type or left.type.kind not in ("opaque", "struct"):
        return None
    if left.type.name in _SIMPLE_TYPES:
        return Estimate(ranges.ONE)
    if left.type.name == _FORMAT_TYPE:
        return Estimate(EstimateRange(1, _FORMAT_SIZE).scale_by(ranges.STRING_FACTOR))
    if left.type.name == _URL_TYPE:
        high = right.size.high if right.size is not None else 1
        return Estimate(EstimateRange(1, high).scale_by(ranges.STRING_FACTOR))
    return None


def _allocation(factor: float, size: EstimateRange) -> Estimate:
    return Estimate(size.scale_by(factor).plus(ranges.ONE).plus(ranges.exact_range(ranges.LIST_BASE)), size)


def _int_value(node: AstNode, default: int) -> int:
    if isinstance(node.expr, Literal) and type(node.expr.value) is int:
        return max(node.expr.value, 0)
    return default


def _slice(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    end = _int_value(call.args[1], call.size(call.target).high)
    return _allocation(1, ranges.exact_range((end - _int_value(call.args[0], 0)) % (1 << 64)))


def _flatten(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    depth = _int_value(call.args[0], ranges.MAX_UINT64) if call.args else 1
    return _allocation(float(depth), call.size(call.target))


def _reverse(call: EstimatedCall) -> Estimate | None:
    return _allocation(1, call.size(call.target)) if call.target is not None else None


def _distinct_cost(call: EstimatedCall) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return _allocation(2.0, size.times(size))


def _sort(name: str, *, by_keys: bool) -> Callable[[EstimatedCall], Estimate | None]:
    factor = 2 + ranges.STRING_FACTOR if name in ("string", "bytes") else 2.0

    def estimate(call: EstimatedCall) -> Estimate | None:
        if call.target is None:
            return None
        size = call.size(call.args[0] if by_keys else call.target)
        return _allocation(factor, size.times(size))

    return estimate


def _sets(factor: int) -> Callable[[EstimatedCall], Estimate]:
    def estimate(call: EstimatedCall) -> Estimate:
        product = call.size(call.args[0]).times(call.size(call.args[1]))
        return Estimate(product.scale_by(factor).plus(ranges.ONE))

    return estimate


Estimator = Callable[[EstimatedCall], Estimate | None]
BY_FUNCTION: Final[dict[str, Estimator]] = {
    **dict.fromkeys(ranges.SIMPLE_FUNCTIONS, _unit_cost),
    "check": lambda _: Estimate(ranges.exact_range(ranges.AUTHORIZATION_CHECK)),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _list_traversal),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _read_argument_sized),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    "replace": _replace,
    "split": _split_cost,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read_argument
    ),
    "ip": _ip,
    "ip.isCanonical": _read_argument_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}
BY_OVERLOAD: Final[dict[str, Estimator]] = {
    "list_slice": _slice,
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "lists_range": lambda call: _allocation(
        1, ranges.exact_range(_int_value(call.args[0], ranges.MAX_UINT64))
    ),
    "list_reverse": _reverse,
    "list_distinct": _distinct_cost,
    **{f"list_{name}_sort": _sort(name, by_keys=False) for name in SORT_NAMES},
    **{f"list_{name}_sortByAssociatedKeys": _sort(name, by_keys=True) for name in SORT_NAMES},
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets(1)),
    "list_sets_equivalent_list": _sets(2),
}
"""Estimators of overloads, which take precedence over those of functions."""


def estimate_call(function: str, call: EstimatedCall) -> Estimate | None:
    """Return the estimate of a call of a library's function; None for functions of the standard library."""
    by_overload = BY_OVERLOAD.get(call.overload)
    if by_overload is not None:
        estimate = by_overload(call)
        if estimate is not None:
            return estimate
    by_function = BY_FUNCTION.get(function)
    return by_function(call) if by_function is not None else None


def literal_size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 1

"""The estimate of the minimum and maximum cost of a checked expression."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mockube.apimachinery.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Select,
)
from mockube.apimachinery.cel.cost import ranges
from mockube.apimachinery.cel.cost.ranges import EstimateRange
from mockube.apimachinery.cel.macros import ACCUMULATOR
from mockube.apimachinery.cel.types import Type

from . import cost_of_calls
from .cost_of_calls import AstNode, Estimate, Sizes, estimate_call, literal_size

Path = tuple[str, ...]
_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


class Entries(NamedTuple):
    """The sizes of the keys and values of a list or map."""

    kind: str
    key: EstimateRange
    value: EstimateRange

    def union(self, other: "Entries") -> "Entries":
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Variable(NamedTuple):
    """A variable of a comprehension: the path of its value, and its sizes if they are known."""

    path: Path
    size: EstimateRange | None
    entries: Entries | None


class Coster:
    """The estimator of one expression, after cel-go's `coster`."""

    def __init__(self, sizes: Sizes) -> None:
        self.schema_sizes = sizes
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, EstimateRange] = {}
        self.entries: dict[int, Entries] = {}
        self.variables: dict[str, list[Variable]] = {}
        self.costs: dict[int, EstimateRange] = {}

    def cost(self, node: Expr) -> EstimateRange:
        cost_range = self.costs.get(id(node))
        if cost_range is None:
            cost_range = self.costs[id(node)] = _COSTS[type(node)](self, node)
        return cost_range

    def sum(self, nodes: Sequence[Expr]) -> EstimateRange:
        total = ranges.ZERO
        for node in nodes:
            total = total.plus(self.cost(node))
        return total

    def literal(self, _node: Literal) -> EstimateRange:
        return ranges.ZERO

    def variable(self, name: str) -> Variable | None:
        stack = self.variables.get(name)
        return stack[-1] if stack else None

    def ident(self, node: Ident) -> EstimateRange:
        variable = self.variable(node.name)
        self.paths[id(node)] = variable.path if variable else (node.name,)
        return ranges.ONE

    def select(self, node: Select) -> EstimateRange:
        if node.resolved is not None:
            self.paths[id(node)] = (node.resolved,)
            return ranges.ONE
        cost = self.cost(node.operand)
        if node.test_only:
            return cost
        if node.operand.type.kind in ("map", "struct", "param"):
            cost = cost.plus(ranges.ONE)
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return cost

    def path(self, node: Expr) -> Path:
        if isinstance(node, Ident):
            variable = self.variable(node.name)
            if variable is not None:
                return variable.path
        return self.paths.get(id(node), ())

    def node(self, expr: Expr) -> AstNode:
        path = self.path(expr)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return AstNode(expr.type, path, self.size(expr), expr)

    def size(self, node: Expr) -> EstimateRange | None:
        size_range = self.sizes.get(id(node)) or _own_size(node)
        if size_range is not None:
            return size_range
        size_range = self.schema_sizes(self.path(node))
        if size_range is not None:
            self.sizes[id(node)] = size_range
            return size_range
        if is_scalar(node.type):
            return ranges.ONE
        variable = self.variable(node.name) if isinstance(node, Ident) else None
        return variable.size if variable else None

    def size_or_unknown(self, node: Expr) -> EstimateRange:
        return self.size(node) or ranges.UNKNOWN

    def entry_sizes(self, node: Expr) -> Entries | None:
        entries = self.entries.get(id(node))
        if entries is None and isinstance(node, Ident):
            variable = self.variable(node.name)
            return variable.entries if variable else None
        return entries

    def call(self, node: Call) -> EstimateRange:
        if node.function == "dyn":
            cost = ranges.ONE.plus(self.cost(node.args[0]))
            self.copy_sizes(node, node.args[0])
            return cost
        arg_costs = [self.cost(arg) for arg in node.args]
        args = [self.node(arg) for arg in node.args]
        target_cost = ranges.ZERO
        target: AstNode | None = None
        if node.target is not None:
            target_cost = self.cost(node.target)
            target = self.node(node.target)
        total, size = EstimateRange(ranges.MAX_UINT64, 0), None
        for overload in node.overloads:
            estimate = self.overload(node, overload, target, args, arg_costs)
            total = total.union(estimate.cost)
            if estimate.size is not None:
                size = size.union(estimate.size) if size is not None else estimate.size
            if overload in ("index_list", "index_map"):
                entries = self.entry_sizes(node.args[0])
                size = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*self.path(node.args[0]), step)
            size = size or self.size(node)
        if size is not None:
            self.sizes[id(node)] = size
        return target_cost.plus(total)

    def overload(
        self,
        node: Call,
        overload: str,
        target: AstNode | None,
        args: Sequence[AstNode],
        costs: Sequence[EstimateRange],
    ) -> Estimate:
        estimate = estimate_call(
            node.function, cost_of_calls.EstimatedCall(overload, target, args, self.schema_sizes)
        )
        special = None if estimate else self.estimate_special(node, overload, costs)
        if special is not None:
            return special
        total = ranges.ZERO
        for cost in costs:
            total = total.plus(cost)
        estimate = estimate or self.standard(node, overload, target, args) or Estimate(ranges.ONE)
        return Estimate(estimate.cost.plus(total), estimate.size)

    def estimate_special(self, node: Call, overload: str, costs: Sequence[EstimateRange]) -> Estimate | None:
        """Estimate a call that may not evaluate all of its arguments; None for other calls."""
        if overload in ("logical_or", "logical_and"):
            return Estimate(EstimateRange(costs[0].low, costs[0].plus(costs[1]).high))
        if overload == "conditional":
            first, second = node.args[1:]
            entries, others = self.entry_sizes(first), self.entry_sizes(second)
            if entries is not None and others is not None:
                self.entries[id(node)] = entries.union(others)
            size = self.size_or_unknown(first).union(self.size_or_unknown(second))
            return Estimate(costs[0].plus(costs[1].union(costs[2])), size)
        return None

    def standard(
        self, node: Call, overload: str, target: AstNode | None, args: Sequence[AstNode]
    ) -> Estimate | None:
        """Estimate a function of the standard library whose cost depends on its arguments; None for others."""
        if overload in _COMPARISON_OVERLOADS:
            smaller = min(_size(args[0]).high, _size(args[1]).high)
            return Estimate(EstimateRange(min(smaller, 1), smaller).scale_by(ranges.STRING_FACTOR))
        if overload in ("add_string", "add_bytes", "add_list"):
            return self.addition(node, overload, args)
        if overload in ("starts_with_string", "ends_with_string"):
            return Estimate(_size(args[0]).scale_by(ranges.STRING_FACTOR))
        if overload == "in_list":
            return Estimate(_size(args[1]).scale_by(1))
        if overload == "matches_string" and target is not None:
            text = _size(target).plus(ranges.ONE).scale_by(ranges.STRING_FACTOR)
            return Estimate(text.times(_size(args[0]).scale_by(ranges.REGEX_FACTOR)))
        if overload == "contains_string" and target is not None:
            text = _size(target).scale_by(ranges.STRING_FACTOR)
            return Estimate(text.times(_size(args[0]).scale_by(ranges.STRING_FACTOR)))
        if overload == "string_format" and target is not None:
            return Estimate(_size(target).scale_by(ranges.STRING_FACTOR))
        return _conversion_cost(overload, args)

    def addition(self, node: Call, overload: str, args: Sequence[AstNode]) -> Estimate:
        size = _size(args[0]).plus(_size(args[1]))
        left, right = self.entry_sizes(node.args[0]), self.entry_sizes(node.args[1])
        if left is not None and right is not None:
            self.entries[id(node)] = left.union(right)
        return Estimate(ranges.ONE if overload == "add_list" else size.scale_by(ranges.STRING_FACTOR), size)

    def create_list(self, node: CreateList) -> EstimateRange:
        total = self.sum(node.elements)
        size = EstimateRange(ranges.MAX_UINT64, 0) if node.elements else ranges.ZERO
        for element in node.elements:
            size = size.union(self.size_or_unknown(element))
        self.entries[id(node)] = Entries("list", ranges.ONE, size)
        return total.plus(ranges.exact_range(ranges.LIST_BASE))

    def create_map(self, node: CreateMap) -> EstimateRange:
        total = ranges.exact_range(ranges.MAP_BASE)
        keys = values = EstimateRange(ranges.MAX_UINT64, 0) if node.entries else ranges.ZERO
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self.size_or_unknown(entry.key))
            values = values.union(self.size_or_unknown(entry.value))
        self.entries[id(node)] = Entries("map", keys, values)
        return total

    def create_struct(self, node: CreateStruct) -> EstimateRange:
        return self.sum([entry.value for entry in node.entries]).plus(ranges.exact_range(ranges.STRUCT_BASE))

    def push(self, name: str, variable: Variable) -> None:
        self.variables.setdefault(name, []).append(variable)

    def comprehension(self, node: Comprehension) -> EstimateRange:
        if _is_bind(node):
            return self.bind(node)
        total = self.cost(node.range).plus(self.cost(node.init))
        accumulator = Variable(self.path(node.init), self.size(node.init), self.entry_sizes(node.init))
        self.push(node.accumulator, accumulator)
        self.push_iteration(node)
        iteration_cost = self.cost(node.step).plus(self.cost(node.condition))
        self.variables[node.variable].pop()
        if node.variable2:
            self.variables[node.variable2].pop()
        total = total.plus(self.cost(node.result))
        self.variables[node.accumulator].pop()
        count = self.size_or_unknown(node.range)
        self.result_sizes(node, count)
        return total.plus(count.times(iteration_cost))

    def push_iteration(self, node: Comprehension) -> None:
        entries = self.entry_sizes(node.range)
        kind = entries.kind if entries else node.range.type.kind
        path = self.path(node.range)
        key = Variable(
            (*path, "@indices" if kind == "list" else "@keys"), entries.key if entries else None, None
        )
        value = Variable(
            (*path, "@items" if kind == "list" else "@values"), entries.value if entries else None, None
        )
        if node.variable2:
            self.push(node.variable, key)
            self.push(node.variable2, value)
        else:
            self.push(node.variable, value if kind == "list" else key._replace(path=(*path, "@keys")))

    def result_sizes(self, node: Comprehension, count: EstimateRange) -> None:
        if isinstance(node.init, Literal):
            size = self.size(node.init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.init, (CreateList, CreateMap)):
            self.sizes[id(node)] = count
            entries = self.entry_sizes(node.step)
            if entries is not None:
                self.entries[id(node)] = entries

    def bind(self, node: Comprehension) -> EstimateRange:
        total = self.cost(node.range).plus(self.cost(node.init))
        self.push(
            node.accumulator,
            Variable(self.path(node.init), self.size(node.init), self.entry_sizes(node.init)),
        )
        total = total.plus(self.cost(node.result))
        self.variables[node.accumulator].pop()
        self.copy_sizes(node, node.result)
        return total

    def copy_sizes(self, to: Expr, source: Expr) -> None:
        size = self.size(source)
        if size is not None:
            self.sizes[id(to)] = size
        entries = self.entry_sizes(source)
        if entries is not None:
            self.entries[id(to)] = entries


def estimate_cost(expr: Expr, sizes: Sizes) -> EstimateRange:
    return Coster(sizes).cost(expr)


def _size(node: AstNode) -> EstimateRange:
    return node.size or ranges.UNKNOWN


def _conversion_cost(overload: str, args: Sequence[AstNode]) -> Estimate | None:
    if overload not in ("string_to_bytes", "bytes_to_string", "strings_quote"):
        return None
    size = _size(args[0])
    result = {
        "string_to_bytes": EstimateRange(size.low, size.high * 4 % (ranges.MAX_UINT64 + 1)),
        "bytes_to_string": EstimateRange(size.low // 4, size.high),
        "strings_quote": EstimateRange(
            ranges.cap(size.low + 2), (size.high * 2 + 2) % (ranges.MAX_UINT64 + 1)
        ),
    }[overload]
    return Estimate(size.scale_by(ranges.STRING_FACTOR), result)


def _own_size(node: Expr) -> EstimateRange | None:
    if isinstance(node, Literal):
        return ranges.exact_range(literal_size(node.value))
    if isinstance(node, CreateList):
        return ranges.exact_range(len(node.elements))
    return ranges.exact_range(len(node.entries)) if isinstance(node, CreateMap) else None


def is_scalar(type_: Type) -> bool:
    return type_.kind in _SCALARS or (type_.is_optional and is_scalar(type_.parameters[0]))


def _is_bind(node: Comprehension) -> bool:
    condition = node.condition
    return (
        isinstance(node.range, CreateList)
        and not node.range.elements
        and isinstance(condition, Literal)
        and condition.value is False
    )


_COMPARISON_OVERLOADS = frozenset(
    (
        "equals",
        "not_equals",
        *(f"{order}_{kind}" for order in ("less", "greater") for kind in ("string", "bytes")),
        *(f"{order}_equals_{kind}" for order in ("less", "greater") for kind in ("string", "bytes")),
    )
)
_COSTS: dict[type, Callable[[Coster, Any], EstimateRange]] = {
    Literal: Coster.literal,
    Ident: Coster.ident,
    Select: Coster.select,
    Call: Coster.call,
    CreateList: Coster.create_list,
    CreateMap: Coster.create_map,
    CreateStruct: Coster.create_struct,
    Comprehension: Coster.comprehension,
}

"""The planner, which converts a checked expression to Python closures. They are called with a frame (see attributes.py)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from mockube.apimachinery.regexp import matcher
from mockube.apimachinery.regexp.errors import RegexpError

from . import attributes, comprehensions, messages, operators
from .ast import Call, Comprehension, CreateList, CreateMap, CreateStruct, Expr, Ident, Literal, Select
from .attributes import Attribute, Frame, LazyValue, Qualifier, Run
from .declarations import Functions, Overload
from .libraries import patches
from .macros import ACCUMULATOR, UNUSED
from .schema_types import unescape
from .standard import UNGUARDED_OVERLOADS
from .values import CelError, CelPanic, CostExceeded, TypeValue, map_key, matches_type, type_name

PER_CALL_LIMIT = 1_000_000
"""The cost limit of one evaluation."""

CallCost = int | Callable[[Sequence[Any], Any], int]
"""The cost of a call: a number, or a function of the arguments and the result."""


class ProgramError(Exception):
    """The evaluation of a constant in an expression fails."""


class Implementation(Protocol):
    """The functions of expressions, and their cost at run time."""

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions by overload."""

    @property
    def singletons(self) -> Mapping[str, Callable[..., Any]]:
        """Functions by name that dispatch on their arguments themselves."""

    @property
    def declarations(self) -> Functions: ...

    def call_cost(self, function: str, overload: str) -> CallCost: ...


class Constant(Struct, frozen=True):
    value: Any


Plan = Constant | Attribute | Run


class Program:
    """An expression that can be evaluated repeatedly, and on any thread."""

    __slots__ = ("_run", "_size", "_variables")

    def __init__(self, run: Run, variables: Mapping[str, int], size: int) -> None:
        self._run = run
        self._variables = variables
        self._size = size

    def evaluate(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """Return the value and its cost; raise CelError, whose `cost` is set, or CostExceeded."""
        frame: Frame = [None] * self._size
        frame[0], frame[1] = 0, limit
        for name, slot in self._variables.items():
            frame[slot] = variables.get(name)
        try:
            value = self._run(frame)
        except CelError as error:
            if frame[0] > limit:
                raise CostExceeded from error
            error.cost = frame[0]
            raise
        except (CelPanic, AttributeError, TypeError) as error:  # or a value of an undeclared type
            raise CelError(str(error) if type(error) is CelPanic else "no such overload") from error
        if frame[0] > limit:
            raise CostExceeded
        return value, frame[0]


def plan(expr: Expr, implementation: Implementation) -> Program:
    planner = Planner(implementation)
    run = planner.run(expr)
    return Program(run, planner.globals, planner.size)


class Planner:
    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.globals: dict[str, int] = {}
        self.scopes: list[dict[str, int]] = []
        self.size = attributes.FIRST_VARIABLE
        self.guarded: set[int] = set()
        """The slots of variables whose value may be a FailedStep or a LazyValue."""
        self.plans: dict[int, Plan] = {}
        """Plans by node identity, because a macro may use a node several times."""

    def slot(self, name: str) -> int:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name not in self.globals:
            self.globals[name] = self.new_slot()
        return self.globals[name]

    def new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    def run(self, expr: Expr) -> Run:
        return run_of(self.plan(expr))

    def plan(self, expr: Expr) -> Plan:
        node_plan = self.plans.get(id(expr))
        if node_plan is None:
            node_plan = self.plans[id(expr)] = _PLANS[type(expr)](self, expr)
        return node_plan

    def literal(self, expr: Literal) -> Plan:
        return Constant(expr.value)

    def variable(self, name: str, expr: Expr) -> Plan:
        if expr.type.kind == "type" and not any(name in scope for scope in self.scopes):
            parameter = expr.type.parameters[0] if expr.type.parameters else None
            return Constant(TypeValue(parameter.name if parameter is not None else "type"))
        slot = self.slot(name)
        if slot in self.guarded:
            return Attribute(attributes.load_guarded(slot))
        return Attribute(attributes.load(slot), slot=slot)

    def ident(self, expr: Ident) -> Plan:
        return self.variable(expr.name, expr)

    def select(self, expr: Select) -> Plan:
        if expr.resolved is not None:
            return self.variable(expr.resolved, expr)
        attribute = attribute_of(self.plan(expr.operand)).select(Qualifier(property_name(expr)))
        if not expr.test_only:
            return attribute
        return attribute.presence_test().run(cost=1)

    def call(self, expr: Call) -> Plan:
        nodes = [expr.target, *expr.args] if expr.target is not None else expr.args
        special = _SPECIAL_CALLS.get(expr.function)
        if special is not None:
            return special(self, nodes)
        plans = [self.plan(node) for node in nodes]
        if expr.function in ("or", "orValue") and expr.overloads[0].startswith("optional_or"):
            return operators.optional_or(*map(run_of, plans), unwrap=expr.function == "orValue")
        overload = expr.overloads[0] if len(expr.overloads) == 1 else ""
        if overload == "in_list" and isinstance(plans[1], Constant):
            membership = operators.constant_membership(run_of(plans[0]), plans[1].value)
            if membership is not None:
                return membership
        function = self.function(expr, overload, nodes)
        cost = self.implementation.call_cost(expr.function, overload)
        if len(plans) == 1 and isinstance(plans[0], Constant) and expr.function in _CONVERSIONS:
            return fold_constant(function, plans[0].value)
        if expr.function in ("matches", "find", "findAll") and isinstance(plans[1], Constant):
            check_pattern(plans[1].value)
        return operators.strict_call(function, tuple(map(run_of, plans)), cost)

    def function(self, expr: Call, overload: str, nodes: Sequence[Expr]) -> Callable[..., Any]:
        """Return the function to call: that of the overload, or a dispatch by the types of the arguments."""
        singleton = self.implementation.singletons.get(expr.function)
        if singleton is not None:
            return singleton
        candidates = self.implementation.declarations[expr.function]
        functions = self.implementation.functions
        if overload and not any(may_differ(node.type) for node in nodes):
            return functions[overload]
        if overload:
            candidates = tuple(candidate for candidate in candidates if candidate.id == overload)
        plain = overload in UNGUARDED_OVERLOADS
        return dispatch(expr.function, candidates, functions, plain=plain)

    def logical_and(self, nodes: Sequence[Expr]) -> Plan:
        return operators.logical_and(self.run(nodes[0]), self.run(nodes[1]))

    def logical_or(self, nodes: Sequence[Expr]) -> Plan:
        return operators.logical_or(self.run(nodes[0]), self.run(nodes[1]))

    def not_strictly_false(self, nodes: Sequence[Expr]) -> Plan:
        return operators.not_strictly_false(self.run(nodes[0]))

    def conditional(self, nodes: Sequence[Expr]) -> Plan:
        condition = self.run(nodes[0])
        branches = [plain_attribute(self.plan(node)) for node in nodes[1:]]
        return Attribute(condition, branches=(condition, branches[0], branches[1]))

    def equals(self, nodes: Sequence[Expr]) -> Plan:
        cost = self.implementation.call_cost("_==_", "equals")
        return operators.equality(self.run(nodes[0]), self.run(nodes[1]), cost)

    def not_equals(self, nodes: Sequence[Expr]) -> Plan:
        cost = self.implementation.call_cost("_!=_", "not_equals")
        return operators.inequality(self.run(nodes[0]), self.run(nodes[1]), cost)

    def index(self, nodes: Sequence[Expr]) -> Plan:
        return self.plan_index(nodes, optional=False)

    def optional_index(self, nodes: Sequence[Expr]) -> Plan:
        return self.plan_index(nodes, optional=True)

    def plan_index(self, nodes: Sequence[Expr], *, optional: bool) -> Plan:
        attribute = attribute_of(self.plan(nodes[0]))
        key = self.plan(nodes[1])
        if isinstance(key, Constant):
            if type(key.value) in attributes.UNSUPPORTED_QUALIFIERS:
                raise ProgramError(
                    f"invalid qualifier type: types.{attributes.UNSUPPORTED_QUALIFIERS[type(key.value)]}"
                )
            return attribute.select(Qualifier(key.value, None, optional))
        run = key.run(cost=0) if isinstance(key, Attribute) else key
        return attribute.select(Qualifier(None, run, optional))

    def create_list(self, expr: CreateList) -> Plan:
        plans = [self.plan(element) for element in expr.elements]
        if not expr.optional and all(isinstance(element, Constant) for element in plans):
            return Constant([element.value for element in plans if isinstance(element, Constant)])
        return operators.create_list(tuple(map(run_of, plans)), expr.optional)

    def create_map(self, expr: CreateMap) -> Plan:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in expr.entries]
        if all(isinstance(k, Constant) and isinstance(v, Constant) and not o for k, v, o in entries):
            constants = [
                (k.value, v.value)
                for k, v, _ in entries
                if isinstance(k, Constant) and isinstance(v, Constant)
            ]
            return fold_constant(lambda pairs: {map_key(key): value for key, value in pairs}, constants)
        return operators.create_map(tuple((run_of(k), run_of(v), o) for k, v, o in entries))

    def create_struct(self, expr: CreateStruct) -> Plan:
        entries = tuple((entry.key, self.run(entry.value), entry.optional) for entry in expr.entries)
        make = messages.constructor(expr.name) or patches.struct_constructor(expr.name)
        return operators.create_struct(make, entries)

    def comprehension(self, expr: Comprehension) -> Plan:
        source = self.run(expr.range)
        init = self.run(expr.init)
        accumulator = self.new_slot()
        self.guarded.add(accumulator)
        scope = {expr.accumulator: accumulator}
        if expr.variable == UNUSED:
            return self.plan_bind(expr, init, scope, accumulator)
        first = self.new_slot()
        second = self.new_slot() if expr.variable2 else 0
        variables = {expr.variable: first} | ({expr.variable2: second} if expr.variable2 else {})
        self.scopes += [scope, variables]
        loop = comprehensions.ComprehensionLoop(source, init, accumulator, first, second)
        loop_run = self.quantifier(expr, loop)
        if loop_run is None:
            condition, step = self.run(expr.condition), self.run(expr.step)
            self.scopes.pop()
            loop_run = comprehensions.fold(loop, condition, step, self.run(expr.result))
            self.scopes.pop()
            return loop_run
        del self.scopes[-2:]
        return loop_run

    def quantifier(self, expr: Comprehension, loop: comprehensions.ComprehensionLoop) -> Run | None:
        """Plan `all` and `exists` without their accumulator, because they are the most frequent macros."""
        step = expr.step
        if not isinstance(step, Call) or expr.accumulator != ACCUMULATOR:
            return None
        if step.function == "_&&_":
            return comprehensions.all_of(loop, self.run(step.args[1]))
        if step.function == "_||_":
            return comprehensions.any_of(loop, self.run(step.args[1]))
        return None

    def plan_bind(self, expr: Comprehension, init: Run, scope: dict[str, int], slot: int) -> Plan:
        self.scopes.append(scope)
        result = self.run(expr.result)
        self.scopes.pop()
        lazy_value = LazyValue(init)

        def bind(frame: Frame) -> Any:
            attributes.check_limit(frame)
            frame[slot] = lazy_value
            return result(frame)

        return bind


def property_name(expr: Select) -> str:
    """Return the key of a selection; fields of structs have escaped names in expressions."""
    return unescape(expr.field) if expr.operand.type.kind == "struct" else expr.field


def check_pattern(pattern: Any) -> None:
    if isinstance(pattern, str):
        try:
            matcher.check(pattern)
        except RegexpError as error:
            raise ProgramError(str(error)) from error


def may_differ(type_: Any) -> bool:
    """Return whether values of this type may have another type at run time."""
    return type_.kind in ("dyn", "any", "param", "error") or any(map(may_differ, type_.parameters))


def dispatch(
    name: str, overloads: Sequence[Overload], functions: Mapping[str, Callable[..., Any]], *, plain: bool
) -> Callable[..., Any]:
    """Return a function that calls the first overload that accepts the arguments' types. `plain` errors do not name it."""

    def call(*args: Any) -> Any:
        for overload in overloads:
            if len(overload.args) == len(args) and all(map(matches_type, args, overload.args)):
                return functions[overload.id](*args)
        if plain:
            raise CelError("no such overload")
        raise CelError(f"no such overload: {name}({', '.join(map(type_name, args))})")

    return call


def fold_constant(function: Callable[..., Any], value: Any) -> Plan:
    try:
        return Constant(function(value))
    except (CelError, CelPanic) as error:
        raise ProgramError(str(error)) from error


def run_of(planned: Plan) -> Run:
    if isinstance(planned, Attribute):
        return planned.run(cost=1)
    if isinstance(planned, Constant):
        value = planned.value
        return lambda _: value
    return planned


def plain_attribute(planned: Plan) -> Attribute:
    """Return an operand of a conditional as an attribute."""
    return planned if isinstance(planned, Attribute) else Attribute(run_of(planned))


def attribute_of(planned: Plan) -> Attribute:
    return planned if isinstance(planned, Attribute) else Attribute(run_of(planned))


_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_SPECIAL_CALLS: dict[str, Callable[[Planner, Sequence[Expr]], Plan]] = {
    "_&&_": Planner.logical_and,
    "_||_": Planner.logical_or,
    "_?_:_": Planner.conditional,
    "_==_": Planner.equals,
    "_!=_": Planner.not_equals,
    "_[_]": Planner.index,
    "_[?_]": Planner.optional_index,
    "_?._": Planner.optional_index,
    "@not_strictly_false": Planner.not_strictly_false,
    "__not_strictly_false__": Planner.not_strictly_false,
}
_PLANS: dict[type, Callable[[Planner, Any], Plan]] = {
    Literal: Planner.literal,
    Ident: Planner.ident,
    Select: Planner.select,
    Call: Planner.call,
    CreateList: Planner.create_list,
    CreateMap: Planner.create_map,
    CreateStruct: Planner.create_struct,
    Comprehension: Planner.comprehension,
}

"""Macros: calls that the parser expands, most of them to comprehensions with a hidden accumulator."""

from collections.abc import Callable, Mapping

from . import types
from .ast import Call, Comprehension, CreateList, CreateMap, Expr, Ident, Literal, Select

ACCUMULATOR = "@result"
_RESERVED_ACCUMULATORS = (ACCUMULATOR, "__result__")
UNUSED = "#unused"
"""The iteration variable of a comprehension over an empty list, which only binds its accumulator."""
_SORT_INPUT = "@__sortBy_input__"

Macro = Callable[[int, Expr | None, list[Expr]], Expr | None]
"""Expands a call with an offset, a target and arguments; returns None if the call is not a macro."""
Macros = Mapping[tuple[str, int, bool], Macro]
"""Macros by name, number of arguments, and whether they have a target."""


class MacroError(Exception):
    """The arguments of a macro are invalid."""

    def __init__(self, message: str, node: Expr) -> None:
        super().__init__(message)
        self.offset = node.offset


def accumulator(offset: int) -> Ident:
    return Ident(offset, ACCUMULATOR)


def call(offset: int, function: str, *args: Expr) -> Call:
    return Call(offset, function, None, list(args))


def literal(offset: int, value: bool | int) -> Literal:  # noqa: FBT001 -- it is the value
    return Literal(offset, value, type=types.BOOL if isinstance(value, bool) else types.INT)


def _has_macro(offset: int, _target: Expr | None, args: list[Expr]) -> Expr:
    argument = args[0]
    if not isinstance(argument, Select):
        raise MacroError("invalid argument to has() macro", argument)
    return Select(offset, argument.operand, argument.field, test_only=True)


def _variable(node: Expr, error_message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(error_message, node)
    if node.name in _RESERVED_ACCUMULATORS:
        raise MacroError("iteration variable overwrites accumulator variable", node)
    return node.name


def _two_variables(first: Expr, second: Expr) -> tuple[str, str]:
    for node in (first, second):
        if not isinstance(node, Ident):
            raise MacroError("argument must be a simple name", node)
    assert isinstance(first, Ident)
    assert isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(f"duplicate variable name: {first.name}", second)
    return _variable(first, ""), _variable(second, "")


ComprehensionParts = tuple[Expr, Expr, Expr, Expr]
"""The initial value, the condition, the step and the result of a comprehension."""


def _all(offset: int, args: list[Expr]) -> ComprehensionParts:
    condition = call(offset, "@not_strictly_false", accumulator(offset))
    step = call(offset, "_&&_", accumulator(offset), args[0])
    return literal(offset, True), condition, step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _exists(offset: int, args: list[Expr]) -> ComprehensionParts:
    condition = call(offset, "@not_strictly_false", call(offset, "!_", accumulator(offset)))
    step = call(offset, "_||_", accumulator(offset), args[0])
    return literal(offset, False), condition, step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _exists_one(offset: int, args: list[Expr]) -> ComprehensionParts:
    incremented = call(offset, "_+_", accumulator(offset), literal(offset, 1))
    step = call(offset, "_?_:_", args[0], incremented, accumulator(offset))
    result = call(offset, "_==_", accumulator(offset), literal(offset, 1))
    return literal(offset, 0), literal(offset, True), step, result  # noqa: FBT003 -- it is the value


def _collect(offset: int, init: Expr, step: Expr, condition: Expr | None) -> ComprehensionParts:
    if condition is not None:
        step = call(offset, "_?_:_", condition, step, accumulator(offset))
    return init, literal(offset, True), step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _to_list(offset: int, args: list[Expr]) -> ComprehensionParts:
    condition = args[0] if len(args) == 2 else None
    step = call(offset, "_+_", accumulator(offset), CreateList(offset, [args[-1]]))
    return _collect(offset, CreateList(offset, []), step, condition)


def _one_variable(make_parts: Callable[[int, list[Expr]], ComprehensionParts], error_message: str) -> Macro:
    def expand(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        assert target is not None
        variable = _variable(args[0], error_message)
        return Comprehension(offset, target, variable, "", ACCUMULATOR, *make_parts(offset, args[1:]))

    return expand


def _two_variable(make_parts: Callable[[int, list[Expr]], ComprehensionParts]) -> Macro:
    def expand(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        assert target is not None
        first, second = _two_variables(args[0], args[1])
        return Comprehension(offset, target, first, second, ACCUMULATOR, *make_parts(offset, args[2:]))

    return expand


def _filter(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    assert target is not None
    variable = _variable(args[0], "argument is not an identifier")
    return Comprehension(offset, target, variable, "", ACCUMULATOR, *_to_list(offset, [args[1], args[0]]))


def _transform_map(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    assert target is not None
    first, second = _two_variables(args[0], args[1])
    step = call(offset, "cel.@mapInsert", accumulator(offset), Ident(offset, first), args[-1])
    condition = args[2] if len(args) == 4 else None
    return Comprehension(
        offset, target, first, second, ACCUMULATOR, *_collect(offset, CreateMap(offset, []), step, condition)
    )


def _transform_map_entry(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    assert target is not None
    first, second = _two_variables(args[0], args[1])
    step = call(offset, "cel.@mapInsert", accumulator(offset), args[-1])
    condition = args[2] if len(args) == 4 else None
    return Comprehension(
        offset, target, first, second, ACCUMULATOR, *_collect(offset, CreateMap(offset, []), step, condition)
    )


def _bind(offset: int, name: str, value: Expr, result: Expr) -> Expr:
    return Comprehension(
        offset,
        CreateList(offset, []),
        UNUSED,
        "",
        name,
        value,
        literal(offset, False),  # noqa: FBT003 -- it is the value
        Ident(offset, name),
        result,
    )


def _optional_map(name: str) -> Macro:
    def expand(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        assert target is not None
        if not isinstance(args[0], Ident):
            raise MacroError(f"{name}() variable name must be a simple identifier", args[0])
        body = _bind(offset, args[0].name, Call(offset, "value", target, []), args[1])
        if name == "optMap":
            body = call(offset, "optional.of", body)
        return call(
            offset, "_?_:_", Call(offset, "hasValue", target, []), body, call(offset, "optional.none")
        )

    return expand


def _sort_by(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    if not isinstance(target, (CreateList, Select, Ident, Comprehension, Call)):
        assert target is not None
        kinds = "a list, identifier, comprehension, call or select expression"
        raise MacroError(f"sortBy can only be applied to {kinds}", target)
    keys = _MAP(offset, Ident(offset, _SORT_INPUT), args)
    assert keys is not None
    return _bind(
        offset, _SORT_INPUT, target, Call(offset, "@sortByAssociatedKeys", Ident(offset, _SORT_INPUT), [keys])
    )


_SIMPLE_NAME = "argument must be a simple name"
_IDENTIFIER = "argument is not an identifier"
_MAP = _one_variable(_to_list, _IDENTIFIER)
MACROS: Macros = {
    ("has", 1, False): _has_macro,
    ("all", 2, True): _one_variable(_all, _SIMPLE_NAME),
    ("exists", 2, True): _one_variable(_exists, _SIMPLE_NAME),
    ("exists_one", 2, True): _one_variable(_exists_one, _SIMPLE_NAME),
    ("map", 2, True): _MAP,
    ("map", 3, True): _MAP,
    ("filter", 2, True): _filter,
    ("optMap", 2, True): _optional_map("optMap"),
    ("optFlatMap", 2, True): _optional_map("optFlatMap"),
    ("all", 3, True): _two_variable(_all),
    ("exists", 3, True): _two_variable(_exists),
    ("existsOne", 3, True): _two_variable(_exists_one),
    ("exists_one", 3, True): _two_variable(_exists_one),
    ("transformList", 3, True): _two_variable(_to_list),
    ("transformList", 4, True): _two_variable(_to_list),
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("sortBy", 2, True): _sort_by,
}


def _bind_name(offset: int, target: Expr | None, args: list[Expr]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError("cel.bind() variable names must be simple identifiers", args[0])
    return _bind(offset, args[0].name, args[1], args[2])


MACROS_WITH_BIND: Macros = {**MACROS, ("bind", 3, True): _bind_name}
"""The macros with `cel.bind`, which only some environments have."""

"""Macros: calls that the parser rewrites, most of them into comprehensions over a hidden accumulator."""

from collections.abc import Callable, Mapping

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Expr,
    Ident,
    Literal,
    Select,
)

ACCUMULATOR = "@result"
_RESERVED_ACCUMULATORS = (ACCUMULATOR, "__result__")
UNUSED = "#unused"
"""The variable of a comprehension that runs over nothing, to bind its accumulator."""
_SORT_INPUT = "@__sortBy_input__"

Macro = Callable[[int, Expr | None, list[Expr]], Expr | None]
"""Takes what it is called on and with; nothing comes of a call that is no macro after all."""
Macros = Mapping[tuple[str, int, bool], Macro]
"""By name, number of arguments, and whether they are called on a value."""


class MacroError(Exception):
    """A macro's arguments are not what it takes."""

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


def _variable(node: Expr, otherwise: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(otherwise, node)
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


Parts = tuple[Expr, Expr, Expr, Expr]
"""What a comprehension begins with, while what it goes on, its step, and its result."""


def _all(offset: int, args: list[Expr]) -> Parts:
    condition = call(offset, "@not_strictly_false", accumulator(offset))
    step = call(offset, "_&&_", accumulator(offset), args[0])
    return literal(offset, True), condition, step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _exists(offset: int, args: list[Expr]) -> Parts:
    condition = call(offset, "@not_strictly_false", call(offset, "!_", accumulator(offset)))
    step = call(offset, "_||_", accumulator(offset), args[0])
    return literal(offset, False), condition, step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _exists_one(offset: int, args: list[Expr]) -> Parts:
    one_more = call(offset, "_+_", accumulator(offset), literal(offset, 1))
    step = call(offset, "_?_:_", args[0], one_more, accumulator(offset))
    result = call(offset, "_==_", accumulator(offset), literal(offset, 1))
    return literal(offset, 0), literal(offset, True), step, result  # noqa: FBT003 -- it is the value


def _collect(offset: int, start: Expr, step: Expr, condition: Expr | None) -> Parts:
    if condition is not None:
        step = call(offset, "_?_:_", condition, step, accumulator(offset))
    return start, literal(offset, True), step, accumulator(offset)  # noqa: FBT003 -- it is the value


def _to_list(offset: int, args: list[Expr]) -> Parts:
    condition = args[0] if len(args) == 2 else None
    step = call(offset, "_+_", accumulator(offset), CreateList(offset, [args[-1]]))
    return _collect(offset, CreateList(offset, []), step, condition)


def _one_variable(parts: Callable[[int, list[Expr]], Parts], otherwise: str) -> Macro:
    def expand(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        assert target is not None
        variable = _variable(args[0], otherwise)
        return Comprehension(offset, target, variable, "", ACCUMULATOR, *parts(offset, args[1:]))

    return expand


def _two_variable(parts: Callable[[int, list[Expr]], Parts]) -> Macro:
    def expand(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        assert target is not None
        first, second = _two_variables(args[0], args[1])
        return Comprehension(offset, target, first, second, ACCUMULATOR, *parts(offset, args[2:]))

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
        mapped = _bind(offset, args[0].name, Call(offset, "value", target, []), args[1])
        if name == "optMap":
            mapped = call(offset, "optional.of", mapped)
        return call(
            offset, "_?_:_", Call(offset, "hasValue", target, []), mapped, call(offset, "optional.none")
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


BINDINGS: Macros = {**MACROS, ("bind", 3, True): _bind_name}
"""With `cel.bind`, which few have."""

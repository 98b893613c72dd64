"""The nodes of an expression. The checker sets their types and overloads, and resolves qualified names.

The offset of a node is the position of its errors: for a call, that of its parenthesis or operator.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .types import DYN, Type


@dataclass(slots=True, eq=False)
class Expr:
    offset: int
    type: Type = field(default=DYN, kw_only=True)


@dataclass(slots=True, eq=False)
class Unspecified(Expr):
    """The node in place of a syntax error."""


@dataclass(slots=True, eq=False)
class Literal(Expr):
    value: Any


@dataclass(slots=True, eq=False)
class Ident(Expr):
    name: str


@dataclass(slots=True, eq=False)
class Select(Expr):
    operand: Expr
    field: str
    test_only: bool = False
    resolved: str | None = None
    """The variable of which the selection is the qualified name, if any."""


@dataclass(slots=True, eq=False)
class Call(Expr):
    function: str
    target: Expr | None
    args: list[Expr]
    overloads: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class CreateList(Expr):
    elements: list[Expr]
    optional: frozenset[int] = frozenset()


class EntryExpr(NamedTuple):
    offset: int
    key: Any
    """An expression in a map; the name of a field in a struct."""
    value: Expr
    optional: bool


@dataclass(slots=True, eq=False)
class CreateMap(Expr):
    entries: list[EntryExpr]


@dataclass(slots=True, eq=False)
class CreateStruct(Expr):
    name: str
    entries: list[EntryExpr]


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    range: Expr
    variable: str
    variable2: str
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr

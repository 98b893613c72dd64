"""The parser's records of the parts of a pattern.

Go limits the height of the parse tree, the product of nested repeat counts and the size of the compiled program. Each
operand has these values, computed from those of its parts, so that the parser needs no tree.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

UNBOUNDED: Final = -1
"""The maximum count of a repetition without a limit."""


class Op(Enum):
    LITERAL = "literal"
    CLASS = "class"
    ASSERTION = "assertion"
    EMPTY = "empty"
    CAPTURE = "capture"
    REPEAT = "repeat"
    CONCAT = "concat"
    ALTERNATE = "alternate"
    LEFT_PARENTHESIS = "("
    VERTICAL_BAR = "|"


class Operand(Struct, kw_only=True):
    """A part of a pattern on the parser's stack."""

    op: Op
    height: int = 1
    copies: int = 1
    """The largest product of nested repeat counts in the operand."""
    size: int = 1
    """The number of instructions of Go's program."""
    cost: int = 1
    """The estimated number of instructions of the matching engine, which needs many for a class beyond ASCII."""
    folds: bool = False
    """Whether a literal ignores case."""

    @property
    def is_pseudo(self) -> bool:
        return self.op in (Op.LEFT_PARENTHESIS, Op.VERTICAL_BAR)

    @property
    def is_character(self) -> bool:
        """Whether the operand matches exactly one character."""
        return self.op is Op.CLASS or (self.op is Op.LITERAL and self.size == 1)


class LeftParenthesis(Operand, kw_only=True):
    """An open group."""

    captures: bool
    flags: "Flags"
    """The flags to restore after the closing parenthesis."""


class Flags(Struct, frozen=True):
    ignore_case: bool = False


def capture(inner: Operand) -> Operand:
    return Operand(
        op=Op.CAPTURE,
        height=inner.height + 1,
        copies=inner.copies,
        size=inner.size + 2,
        cost=inner.cost + 2,
    )


def star(inner: Operand, *, symbol: str) -> Operand:
    """Return the operand of `x*`, `x+` or `x?`."""
    extra = 2 if symbol == "*" else 1
    return Operand(
        op=Op.REPEAT,
        height=inner.height + 1,
        copies=inner.copies,
        size=inner.size + extra,
        cost=inner.cost + extra,
    )


def repeat(inner: Operand, minimum: int, maximum: int) -> Operand:
    """Return the operand of `x{minimum,maximum}`."""
    count = minimum if maximum == UNBOUNDED else maximum
    return Operand(
        op=Op.REPEAT,
        height=inner.height + 1,
        copies=0 if maximum == 0 else max(count, 1) * inner.copies,
        size=_repetition_size(inner.size, minimum, maximum),
        cost=_repetition_size(inner.cost, minimum, maximum),
    )


def _repetition_size(size: int, minimum: int, maximum: int) -> int:
    if maximum == UNBOUNDED:
        return size + 2 if minimum == 0 else minimum * size + 1
    return max(1, maximum * size + maximum - minimum)


def concat(parts: Sequence[Operand]) -> Operand:
    if not parts:
        return Operand(op=Op.EMPTY)
    return parts[0] if len(parts) == 1 else _combine(Op.CONCAT, parts)


def alternate(parts: Sequence[Operand]) -> Operand:
    """Return the operand of an alternation. Adjacent single characters become one class, adjacent empty operands one."""
    merged: list[Operand] = []
    for part in parts:
        last = merged[-1] if merged else None
        if last is not None and last.is_character and part.is_character:
            merged[-1] = Operand(op=Op.CLASS, cost=last.cost + part.cost)
        elif last is None or not (last.op is part.op is Op.EMPTY):
            merged.append(part)
    return merged[0] if len(merged) == 1 else _combine(Op.ALTERNATE, merged)


def _combine(op: Op, parts: Sequence[Operand]) -> Operand:
    """Combine parts. A part with the same operation adds no level."""
    forks = len(parts) - 1 if op is Op.ALTERNATE else 0
    return Operand(
        op=op,
        height=max(part.height + (part.op is not op) for part in parts),
        copies=max(part.copies for part in parts),
        size=sum(part.size for part in parts) + forks,
        cost=sum(part.cost for part in parts) + forks,
    )

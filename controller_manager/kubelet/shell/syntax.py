"""The commands that a script consists of, as data."""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct


class ShellSyntaxError(Exception):
    """The text is no script, or uses what is not simulated."""


class Text(Struct, frozen=True):
    text: str
    quoted: bool


class Parameter(Struct, frozen=True):
    """`$name`, `${name:-word}`, `${#name}`."""

    name: str
    operator: str
    word: "Word"
    quoted: bool


class Substitution(Struct, frozen=True):
    """`$(script)`."""

    script: "Command"
    quoted: bool


class Arithmetic(Struct, frozen=True):
    """`$((expression))`."""

    expression: "Word"
    quoted: bool


Part: TypeAlias = Text | Parameter | Substitution | Arithmetic
Word: TypeAlias = tuple[Part, ...]


class Redirect(Struct, frozen=True):
    descriptor: int
    operator: str
    target: Word


class Simple(Struct, frozen=True):
    assignments: Sequence[tuple[str, Word]]
    words: Sequence[Word]
    redirects: Sequence[Redirect]


class Pipeline(Struct, frozen=True):
    commands: Sequence["Command"]
    negated: bool


class Sequential(Struct, frozen=True):
    """Commands with what joins each to the one before: `;`, `&&` or `||`."""

    items: Sequence[tuple[str, "Command"]]


class If(Struct, frozen=True):
    branches: Sequence[tuple["Command", "Command"]]
    otherwise: "Command | None"


class Loop(Struct, frozen=True):
    """`while`, or `until` where `is_while` is false."""

    condition: "Command"
    body: "Command"
    is_while: bool


class For(Struct, frozen=True):
    name: str
    words: Sequence[Word] | None
    body: "Command"


class Case(Struct, frozen=True):
    word: Word
    branches: Sequence[tuple[Sequence[Word], "Command"]]


class Group(Struct, frozen=True):
    body: "Command"
    subshell: bool
    redirects: Sequence[Redirect]


class Function(Struct, frozen=True):
    name: str
    body: "Command"


Command: TypeAlias = Simple | Pipeline | Sequential | If | Loop | For | Case | Group | Function

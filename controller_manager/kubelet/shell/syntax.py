"""The syntax tree of a script."""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct


class ShellSyntaxError(Exception):
    """The text is not a script, or uses a feature that is not simulated."""


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


class SimpleCommand(Struct, frozen=True):
    assignments: Sequence[tuple[str, Word]]
    words: Sequence[Word]
    redirects: Sequence[Redirect]


class Pipeline(Struct, frozen=True):
    commands: Sequence["Command"]
    negated: bool


class CommandList(Struct, frozen=True):
    """A list of commands, each with the operator before it: `;`, `&&` or `||`."""

    items: Sequence[tuple[str, "Command"]]


class If(Struct, frozen=True):
    branches: Sequence[tuple["Command", "Command"]]
    otherwise: "Command | None"


class Loop(Struct, frozen=True):
    """`while`, or `until` if `is_while` is false."""

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


class CommandGroup(Struct, frozen=True):
    body: "Command"
    subshell: bool
    redirects: Sequence[Redirect]


class FunctionDefinition(Struct, frozen=True):
    name: str
    body: "Command"


Command: TypeAlias = (
    SimpleCommand | Pipeline | CommandList | If | Loop | For | Case | CommandGroup | FunctionDefinition
)

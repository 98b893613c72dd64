"""The commands that a script consists of, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


class ShellSyntaxError(Exception):
    """The text is no script, or uses what is not simulated."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`, `${name:-word}`, `${#name}`."""

    name: str
    operator: str
    word: "Word"
    quoted: bool


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(script)`."""

    script: "Command"
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((expression))`."""

    expression: "Word"
    quoted: bool


Part: TypeAlias = Text | Parameter | Substitution | Arithmetic
Word: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    descriptor: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: Sequence[tuple[str, Word]]
    words: Sequence[Word]
    redirects: Sequence[Redirect]


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: Sequence["Command"]
    negated: bool


@dataclass(frozen=True, slots=True)
class Sequential:
    """Commands with what joins each to the one before: `;`, `&&` or `||`."""

    items: Sequence[tuple[str, "Command"]]


@dataclass(frozen=True, slots=True)
class If:
    branches: Sequence[tuple["Command", "Command"]]
    otherwise: "Command | None"


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, or `until` where `wanted` is false."""

    condition: "Command"
    body: "Command"
    wanted: bool


@dataclass(frozen=True, slots=True)
class For:
    name: str
    words: Sequence[Word] | None
    body: "Command"


@dataclass(frozen=True, slots=True)
class Case:
    word: Word
    branches: Sequence[tuple[Sequence[Word], "Command"]]


@dataclass(frozen=True, slots=True)
class Group:
    body: "Command"
    subshell: bool
    redirects: Sequence[Redirect]


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: "Command"


Command: TypeAlias = Simple | Pipeline | Sequential | If | Loop | For | Case | Group | Function

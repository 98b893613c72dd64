"""The syntax tree of a script."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from .messages import WordedError

KEYWORDS: Final = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "{",
        "}",
        "!",
        "in",
    ]
)
BASH_KEYWORDS: Final = frozenset(["[[", "]]", "function", "select", "time"])
"""The words that bash has beside those of every shell."""


class ShellSyntaxError(WordedError):
    """The text is not a script, or a feature is not simulated, or a limit is exceeded: the shell ends with exit code 2."""

    is_reported = False
    """Whether the message is written already, with the redirections of a command."""
    line = 0
    """The number of the line, if the parser raises it."""
    bash_line = 0
    """The number of the line that bash reports, if it is another one."""
    source = ""
    """What bash prints about the text that is invalid, such as its line in quotes."""


class IncompleteScript(ShellSyntaxError):
    """The text is the beginning of a script."""


class ScriptEnd(ShellSyntaxError):
    """The parentheses of `for ((` are not balanced: bash takes this for the end of the script."""


class Text(Struct, frozen=True):
    text: str
    quoted: bool


class Tilde(Struct, frozen=True):
    """`~` or `~user` at the beginning of a word."""

    user: str
    quoted: bool = False


class Parameter(Struct, frozen=True, kw_only=True):
    """`$name`, `${name:-word}`, `${#name}`, `${name[index]/pattern/word}` and the like."""

    name: str
    operator: str = ""
    word: "Word" = ()
    second: "Word | None" = None
    """The replacement of a pattern, or the length of a substring."""
    index: "Word | None" = None
    """The index of an element of an array; `@` and `*` are all elements."""
    braced: bool = True
    """Whether it is in braces, as in `${1}`."""
    quoted: bool


class Substitution(Struct, frozen=True):
    """`$(script)`."""

    script: "Command"
    quoted: bool


class Arithmetic(Struct, frozen=True):
    """`$((expression))`."""

    expression: "Word"
    quoted: bool


class ProcessSubstitution(Struct, frozen=True):
    """`<(script)`, or `>(script)`."""

    script: "Command"
    quoted: bool = True
    is_output: bool = False


Part: TypeAlias = Text | Tilde | Parameter | Substitution | Arithmetic | ProcessSubstitution
Word: TypeAlias = tuple[Part, ...]


class HereDocument(Struct, kw_only=True):
    """The text behind `<<`, which the parser reads after the line."""

    delimiter: str
    expands: bool
    strips_tabs: bool
    text: Word = ()


def indexed_word(index: Word, word: Word) -> Word:
    """Return the element `[index]=word` of an array as the text that it is where it is none."""
    return (Text("[", quoted=True), *index, Text("]=", quoted=True), *word)


class Redirect(Struct, frozen=True):
    descriptor: int
    operator: str
    target: Word
    document: HereDocument | None = None
    variable: str = ""
    """The variable for the number of a descriptor that the shell chooses, as in `{name}>file`."""
    source: str = ""
    """The text of the target."""


class Assignment(Struct, frozen=True, kw_only=True):
    name: str
    value: Word = ()
    index: Word | None = None
    elements: "Sequence[tuple[Word | None, Word]] | None" = None
    """The elements of an array, each with its index or without one."""
    appends: bool = False


class SimpleCommand(Struct, frozen=True):
    assignments: Sequence[Assignment]
    words: Sequence[Word | Assignment]
    """The arguments; those of `declare` and the like can be assignments."""
    redirects: Sequence[Redirect]
    line: int


class Pipeline(Struct, frozen=True):
    commands: Sequence["Command"]
    """None in the `!` of bash with nothing behind it."""
    negated: bool


class CommandList(Struct, frozen=True):
    """A list of commands, each with the operator before it: `;`, `&&` or `||`."""

    items: Sequence[tuple[str, "Command"]]


class Background(Struct, frozen=True):
    """`command &`."""

    command: "Command"


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
    line: int


class ArithmeticFor(Struct, frozen=True):
    """`for ((start; condition; step))`."""

    start: Word
    condition: Word
    step: Word
    body: "Command"
    line: int


class ArithmeticCommand(Struct, frozen=True):
    """`((expression))`."""

    expression: Word
    line: int


class Branch(Struct, frozen=True):
    patterns: Sequence[Word]
    body: "Command"
    end: str
    """`;;`, `;&` to continue with the next body, or `;;&` to continue with the next patterns."""


class Case(Struct, frozen=True):
    word: Word
    branches: Sequence[Branch]
    line: int


class CommandGroup(Struct, frozen=True):
    body: "Command"
    subshell: bool
    redirects: Sequence[Redirect]
    line: int


class FunctionDefinition(Struct, frozen=True):
    name: str
    body: "Command"


class OperatorCondition(Struct, frozen=True):
    """A condition of `[[ ]]` with one or two operands: `-f word`, `word == pattern`."""

    operator: str
    operands: Sequence[Word]


class Conjunction(Struct, frozen=True):
    """Conditions of `[[ ]]` that are joined by `&&` or `||`."""

    left: "ConditionTree"
    right: "ConditionTree"
    is_and: bool


class Negation(Struct, frozen=True):
    """A condition of `[[ ]]` behind `!`."""

    condition: "ConditionTree"


ConditionTree: TypeAlias = OperatorCondition | Conjunction | Negation


class Conditional(Struct, frozen=True):
    """`[[ condition ]]`."""

    condition: ConditionTree
    line: int


Command: TypeAlias = (
    SimpleCommand
    | Pipeline
    | CommandList
    | Background
    | If
    | Loop
    | For
    | ArithmeticFor
    | ArithmeticCommand
    | Case
    | CommandGroup
    | FunctionDefinition
    | Conditional
)

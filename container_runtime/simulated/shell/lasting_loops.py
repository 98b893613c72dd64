"""Whether a loop certainly never ends by itself, as its condition is constant and nothing in its body can leave it. Pure.

What is said of such a loop holds for all its iterations, also if each of them changes something, as a counter does.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from .state import Shell
from .syntax import (
    Arithmetic,
    ArithmeticCommand,
    Assignment,
    Background,
    Command,
    CommandList,
    For,
    FunctionDefinition,
    HereDocument,
    Loop,
    Parameter,
    ProcessSubstitution,
    SimpleCommand,
    Substitution,
    Text,
    Word,
)

_ALWAYS_TRUE: Final = frozenset({"true", ":"})
_HARMLESS: Final = frozenset(
    [
        "true",
        "false",
        ":",
        "echo",
        "printf",
        "test",
        "[",
        "sleep",
        "usleep",
        "date",
        "hostname",
        "id",
        "uname",
        "whoami",
        "uptime",
        "cat",
        "head",
        "tail",
        "wc",
        "cut",
        "tr",
        "sort",
        "uniq",
        "grep",
        "seq",
        "expr",
        "touch",
        "rm",
        "ls",
        "df",
        "free",
        "nproc",
        "sync",
        "base64",
        "md5sum",
        "sha256sum",
    ]
)
"""Programs that neither end nor change the shell that calls them, whatever their arguments are."""
_COUNTING: Final = frozenset({"expr"})
"""Programs whose output does not grow from one iteration to the next."""
_MAY_FAIL: Final = re.compile(r"[/%](?!\s*[1-9])|\*\*")
"""Matches an operator that may end a shell by an error: a division by what may be zero, a negative exponent."""
_READING: Final = frozenset({"", "length", "-", ":-"})
"""The operators of parameters that neither set a variable nor end a shell."""
_SIGNALS: Final = frozenset({"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "EXIT"})
"""The traps that nothing in the loop itself runs."""


def lasts(loop: Loop, shell: Shell) -> bool:
    """Return whether a loop goes on until a signal ends it."""
    is_constant = not loop.is_while and _name(loop.condition) == "false"
    is_constant |= loop.is_while and _name(loop.condition) in _ALWAYS_TRUE
    return (
        is_constant
        and "errexit" not in shell.options
        and shell.traps.keys() <= _SIGNALS
        and all(_stays(node, shell) for node in _nodes((loop.condition, loop.body)))
    )


def _nodes(value: object) -> Iterator[Struct]:
    """Yield all parts of a syntax tree."""
    if isinstance(value, Struct):
        yield value
        for field in value.__struct_fields__:
            yield from _nodes(getattr(value, field))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _nodes(item)


def _stays(node: Struct, shell: Shell) -> bool:
    match node:
        case SimpleCommand(words=()):
            return not node.redirects
        case SimpleCommand():
            name = _name(node)
            return name in _HARMLESS and name not in shell.functions and not _sets_variable(node)
        case Assignment(value=value):
            is_plain = node.index is None and node.elements is None and not node.appends
            return is_plain and all(_is_bounded(part) for part in value)
        case Parameter():
            return node.operator in _READING
        case Arithmetic(expression=expression) | ArithmeticCommand(expression=expression):
            return all(isinstance(part, (Text, Parameter)) for part in expression) and not _MAY_FAIL.search(
                "".join(part.text if isinstance(part, Text) else "0" for part in expression)
            )
        case Background() | FunctionDefinition() | Loop() | For() | ProcessSubstitution() | HereDocument():
            return False
        case _:
            return True


def _sets_variable(command: SimpleCommand) -> bool:
    """Return whether it is `printf -v`."""
    return _name(command) == "printf" and (len(command.words) < 2 or _literal(command.words[1]) in {"", "-v"})


def _is_bounded(part: object) -> bool:
    """Return whether a part of a value has a bounded length in all iterations."""
    match part:
        case Text() | Arithmetic():
            return True
        case Substitution(script=script):
            nodes = [*_nodes(script)]
            names = {_name(node) for node in nodes if isinstance(node, SimpleCommand)}
            return names <= _COUNTING or not any(isinstance(node, Parameter) for node in nodes)
        case _:
            return False


def _name(command: Command) -> str:
    """Return the name of the program of a simple command, also of the only one in a list; "" if it is not written out."""
    if isinstance(command, CommandList) and len(command.items) == 1:
        command = command.items[0][1]
    return _literal(command.words[0]) if isinstance(command, SimpleCommand) and command.words else ""


def _literal(word: Word | Assignment) -> str:
    if isinstance(word, Assignment) or not all(isinstance(part, Text) for part in word):
        return ""
    return "".join(part.text for part in word if isinstance(part, Text))

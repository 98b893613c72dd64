"""The expressions between the braces of a template: values, fields, variables, calls and pipelines.

Pure. An expression is compiled once into a function of the scope. The compilation refuses unknown functions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from .functions import FROM_ENVIRONMENT, FUNCTIONS

_MAX_NUMBER_LENGTH: Final = 18
"""The maximum number of characters of a number, because parsing thousands of digits is slow."""


class TemplateError(ValueError):
    """A template cannot be parsed or executed; the message has the place and the reason."""


Environment = Mapping[str, Callable[..., Any]]
"""The context functions: the time, and the addresses of nodes and pods."""


class Scope(Struct):
    """The dot and the variables at one place of a template."""

    dot: Any
    environment: Environment
    variables: dict[str, Any]
    outer: "Scope | None" = None

    def inner(self, dot: Any) -> "Scope":
        return Scope(dot, self.environment, {}, self)

    def find(self, name: str) -> Any:
        scope = self._defining_scope(name)
        if scope is None:
            raise TemplateError(f"undefined variable {name!r}")
        return scope.variables[name]

    def assign(self, name: str, value: Any) -> None:
        scope = self._defining_scope(name)
        if scope is None:
            raise TemplateError(f"undefined variable {name!r}")
        scope.variables[name] = value

    def _defining_scope(self, name: str) -> "Scope | None":
        scope: Scope | None = self
        while scope is not None and name not in scope.variables:
            scope = scope.outer
        return scope


Expression = Callable[[Scope], Any]

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN: Final = re.compile(
    rf"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?[0-9]+(?:\.[0-9]+)?)
    |(?P<variable>\$(?:{_NAME})?(?:\.{_NAME})*)|(?P<field>\.(?:{_NAME}(?:\.{_NAME})*)?)
    |(?P<close>\)(?:\.{_NAME})*)|(?P<word>{_NAME})|(?P<sign>:=|=|\||\(|,))""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": "\r"}
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "nil": None}


@dataclass(slots=True)
class Tokens:
    """The tokens of one action, each with its kind."""

    text: str
    remaining: list[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.remaining, position, text = [], 0, self.text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise TemplateError(f"{text[position:].strip()!r} is not supported")
            self.remaining.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        return self.remaining[ahead] if ahead < len(self.remaining) else ("end", "")

    def take(self) -> tuple[str, str]:
        return self.remaining.pop(0) if self.remaining else ("end", "")

    def skip(self, text: str) -> bool:
        """Take the next token if it is `text`; return whether it was."""
        if self.peek()[1] != text:
            return False
        self.take()
        return True

    def finish(self) -> None:
        if self.remaining:
            raise TemplateError(f"unexpected {self.remaining[0][1]!r} in {self.text.strip()!r}")


def parse_pipeline(tokens: Tokens) -> Expression:
    value = _command(tokens, ())
    while tokens.skip("|"):
        value = _command(tokens, (value,))
    return value


def _command(tokens: Tokens, piped_values: Sequence[Expression]) -> Expression:
    kind, text = tokens.peek()
    if kind == "word" and text not in _WORDS:
        tokens.take()
        arguments = []
        while tokens.peek()[0] in ("text", "number", "variable", "field", "word") or tokens.peek()[1] == "(":
            arguments.append(_operand(tokens))
        return _call(text, [*arguments, *piped_values])
    if piped_values:
        raise TemplateError(f"{text!r} is no function, and nothing can be piped into it")
    return _operand(tokens)


def _operand(tokens: Tokens) -> Expression:
    kind, text = tokens.take()
    if kind == "text":
        return _constant(_unquote(text))
    if kind == "number":
        return _constant(_number(text))
    if kind == "variable":
        name, *path = text.split(".")
        return _fields(lambda scope: scope.find(name), path)
    if kind == "field":
        return _fields(lambda scope: scope.dot, [part for part in text.split(".") if part])
    if kind == "word":
        return _constant(_WORDS[text]) if text in _WORDS else _call(text, [])
    if text != "(":
        raise TemplateError(f"unexpected {text or 'end'!r} in {tokens.text.strip()!r}")
    value = parse_pipeline(tokens)
    closing, path_text = tokens.take()
    if closing != "close":
        raise TemplateError(f"unclosed parenthesis in {tokens.text.strip()!r}")
    return _fields(value, path_text.split(".")[1:])


def _number(text: str) -> int | float:
    if len(text) > _MAX_NUMBER_LENGTH:
        raise TemplateError(f"a number of {len(text)} characters is not supported")
    return float(text) if "." in text else int(text)


def _unquote(token: str) -> str:
    if token[0] == "`":
        return token[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), token[1:-1])


def _constant(value: Any) -> Expression:
    return lambda _: value


def _fields(value: Expression, path: Sequence[str]) -> Expression:
    if not path:
        return value

    def read(scope: Scope) -> Any:
        result = value(scope)
        for name in path:
            result = result.get(name) if isinstance(result, Mapping) else None
        return result

    return read


def _call(name: str, arguments: Sequence[Expression]) -> Expression:
    function = FUNCTIONS.get(name)
    if function is None and name not in FROM_ENVIRONMENT:
        raise TemplateError(f"function {name!r} is not supported")

    def call(scope: Scope) -> Any:
        implementation = function or scope.environment.get(name)
        if implementation is None:
            raise TemplateError(f"function {name!r} is not available here")
        try:
            return implementation(*(argument(scope) for argument in arguments))
        except (TypeError, LookupError, ValueError, ArithmeticError) as error:
            raise TemplateError(f"error calling {name}: {error}") from error

    return call

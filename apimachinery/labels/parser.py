"""A parser for the text of label selectors: `app=web,tier in (front,back),!canary`.

It accepts what upstream's lexer and parser accept, with their error messages.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import errors
from mockube.apimachinery.paths import ROOT

from .selector import EVERYTHING, Operator, Requirement, Selector, SelectorError, check_key, require

_IDENTIFIER: Final = "identifier"
_END: Final = "end of string"

# A NUL ends a token. A NUL at the start of a token ends the text.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>[=!]=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>\0]+))\0?")

_BINARY: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


def parse(text: str) -> Selector:
    """Parse a selector; raise `SelectorError` if the text is invalid."""
    requirements = _Parser(text).parse()
    return Selector(tuple(requirements)) if requirements else EVERYTHING


class _Token(NamedTuple):
    """A token. `kind` is the symbol itself, or `_IDENTIFIER` or `_END`; `in` and `notin` are identifiers."""

    kind: str
    text: str


def _scan(text: str) -> list[_Token]:
    tokens = []
    position = 0
    while match := _TOKEN.match(text, position):
        symbol, word = match.groups()
        tokens.append(_Token(symbol or _IDENTIFIER, symbol or word))
        position = match.end()
    return [*tokens, _Token(_END, "")]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _scan(text)
        self._position = 0

    def parse(self) -> list[Requirement]:
        if self._lookahead.kind == _END:
            return []
        requirements = [self._parse_requirement("!, identifier, or 'end of string'")]
        while self._lookahead.kind != _END:
            if self._lookahead.kind != ",":
                raise self._unexpected_token(", expected: ',' or 'end of string'")
            self._consume()
            requirements.append(self._parse_requirement("identifier after ','"))
        return requirements

    @property
    def _lookahead(self) -> _Token:
        return self._tokens[self._position]

    def _consume(self) -> _Token:
        self._position += 1
        return self._tokens[self._position - 1]

    def _unexpected_token(self, expectation: str) -> SelectorError:
        return SelectorError(f"found '{self._lookahead.text}'{expectation}")

    def _parse_requirement(self, expected: str) -> Requirement:
        if self._lookahead.kind not in (_IDENTIFIER, "!"):
            raise self._unexpected_token(f", expected: {expected}")
        try:
            return self._requirement()
        except SelectorError as problem:
            raise SelectorError(f"unable to parse requirement: {problem}") from None

    def _requirement(self) -> Requirement:
        is_negated = self._lookahead.kind == "!"
        if is_negated:
            self._consume()
        key = self._identifier()
        key_errors = check_key(key, ROOT)
        if key_errors:
            raise SelectorError(errors.aggregate(key_errors))
        if is_negated:
            return require(key, Operator.DOES_NOT_EXIST)
        if self._lookahead.kind in (_END, ","):
            return require(key, Operator.EXISTS)
        operator = self._operator()
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else self._exact_value()
        return require(key, operator, sorted(values))

    def _identifier(self) -> str:
        if self._lookahead.kind != _IDENTIFIER:
            raise self._unexpected_token(", expected: identifier")
        return self._consume().text

    def _operator(self) -> Operator:
        if self._lookahead.text not in _BINARY:
            raise self._unexpected_token(
                f", expected: {', '.join(operator.value for operator in _BINARY.values())}"
            )
        return _BINARY[self._consume().text]

    def _exact_value(self) -> Sequence[str]:
        return [""] if self._lookahead.kind in (_END, ",") else [self._identifier()]

    def _set(self) -> set[str]:
        if self._lookahead.kind != "(":
            raise self._unexpected_token(" expected: '('")
        self._consume()
        if self._lookahead.kind not in (_IDENTIFIER, ",", ")"):
            raise self._unexpected_token(", expected: ',', ')' or identifier")
        values = {""} if self._lookahead.kind == ")" else self._members()
        self._consume()
        return values

    def _members(self) -> set[str]:
        """Return the values before the closing parenthesis. A missing value between commas is an empty string."""
        values: set[str] = set()
        while self._lookahead.kind != ")":
            if self._lookahead.kind == ",":
                self._consume()
                if not values or self._lookahead.kind in (",", ")"):
                    values.add("")
            elif self._lookahead.kind == _IDENTIFIER:
                values.add(self._consume().text)
                if self._lookahead.kind not in (",", ")"):
                    raise self._unexpected_token(", expected: ',' or ')'")
            else:
                raise self._unexpected_token(", expected: ',', or identifier")
        return values

"""Compile and evaluate the queries of stages: a subset of jq, as kwok uses it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final


class StageError(ValueError):
    """A stage or a query is not supported; the message names the part."""


Filter = Callable[[Any], Iterator[Any]]
"""Yields the results of a part of a query for one value."""

Query = Callable[[Any], Sequence[Any] | None]
"""Returns all results for an object; None if the query fails, for example at a path into a string."""

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<field>\.[A-Za-z_][A-Za-z0-9_]*)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>-?[0-9]{1,18})
    |(?P<word>[a-z]+)|(?P<sign>==|!=|[.|()\[\]?]))""",
    re.VERBOSE,
)
_WORDS: Final[Mapping[str, Any]] = {"null": None, "true": True, "false": False}
_ESCAPE: Final = re.compile(r"\\(.)")


MAX_LENGTH: Final = 1000
"""The maximum number of characters of a query: each step of a path is a nested call."""


class _QueryFailed(Exception):
    """jq would end with an error."""


def compile_query(text: str) -> Query:
    parser = _Parser(text)
    pipeline = parser.pipeline()
    parser.expect("")

    def query(obj: Any) -> Sequence[Any] | None:
        try:
            return list(pipeline(obj))
        except _QueryFailed:
            return None

    return query


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize(text)

    def _tokenize(self, text: str) -> list[str]:
        if len(text) > MAX_LENGTH:
            raise StageError(f"jq: a query of more than {MAX_LENGTH} characters is not supported")
        tokens, position = [], 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self._unsupported_error(stripped[position:].lstrip())
            tokens.append(match[0].strip())
            position = match.end()
        return tokens

    def _unsupported_error(self, construct: str) -> StageError:
        return StageError(f"jq {self._text!r}: {construct!r} is not supported")

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def expect(self, token: str) -> None:
        next_token = self._take()
        if next_token != token:
            raise self._unsupported_error(next_token or "the end")

    def pipeline(self) -> Filter:
        stages = [self._term()]
        while self._next() == "|":
            self._take()
            stages.append(self._term())
        return _pipe(stages)

    def _term(self) -> Filter:
        if self._next() != "select":
            return self._path()
        self._take()
        self.expect("(")
        condition = self._condition()
        self.expect(")")
        return _select(condition)

    def _condition(self) -> Filter:
        left = self._comparison()
        while self._next() in ("and", "or"):
            left = _logical(self._take(), left, self._comparison())
        return left

    def _comparison(self) -> Filter:
        left = self._operand()
        if self._next() not in ("==", "!="):
            return left
        sign = self._take()
        return _equality(sign, left, self._operand())

    def _operand(self) -> Filter:
        token = self._next()
        if token[:1] == '"':
            return _constant(_unquote(self._take()))
        if token.lstrip("-").isdigit():
            return _constant(int(self._take()))
        if token in _WORDS:
            return _constant(_WORDS[self._take()])
        return self._path()

    def _path(self) -> Filter:
        if self._next()[:1] != ".":
            raise self._unsupported_error(self._next() or "the end")
        steps: list[Filter] = []
        while self._next()[:1] in (".", "["):
            step = self._take()
            if step == "[":
                steps.append(self._bracket())
            elif step != ".":
                steps.append(_field(step[1:]))
            elif self._next()[:1] == '"':
                steps.append(_field(_unquote(self._take())))
            if self._next() == "?":
                self._take()
                steps = [_suppress_failure(_pipe(steps))]
        return _pipe(steps)

    def _bracket(self) -> Filter:
        content = self._take()
        if content == "]":
            return _iterate
        self.expect("]")
        if content[:1] == '"':
            return _field(_unquote(content))
        if content.lstrip("-").isdigit():
            return _item(int(content))
        raise self._unsupported_error(content)


def _unquote(token: str) -> str:
    return _ESCAPE.sub(r"\1", token[1:-1])


# --- the filters


def _pipe(stages: Sequence[Filter]) -> Filter:
    def run(value: Any, index: int = 0) -> Iterator[Any]:
        if index == len(stages):
            yield value
        else:
            for result in stages[index](value):
                yield from run(result, index + 1)

    return run


def _field(name: str) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        if value is None:
            yield None
        elif isinstance(value, Mapping):
            yield value.get(name)
        else:
            raise _QueryFailed

    return run


def _item(index: int) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        if value is None:
            yield None
        elif isinstance(value, list | tuple):
            yield value[index] if -len(value) <= index < len(value) else None
        else:
            raise _QueryFailed

    return run


def _iterate(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        raise _QueryFailed


def _suppress_failure(inner: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        try:
            yield from inner(value)
        except _QueryFailed:
            return

    return run


def _select(condition: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for result in condition(value):
            if result not in (None, False):
                yield value

    return run


def _constant(value: Any) -> Filter:
    return lambda _: iter([value])


def _equality(sign: str, left: Filter, right: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for other in right(value):
            for operand in left(value):
                yield (operand == other) is (sign == "==")

    return run


def _logical(word: str, left: Filter, right: Filter) -> Filter:
    short_circuit = word == "or"

    def run(value: Any) -> Iterator[Any]:
        for operand in left(value):
            if (operand not in (None, False)) is short_circuit:
                yield short_circuit
            else:
                for other in right(value):
                    yield other not in (None, False)

    return run

"""Arithmetic expressions, with assignments to variables."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from . import limits
from .state import DiscardError

_LIMIT: Final = 1 << 63
_MAX_BASE: Final = 64
_MAX_SHOWN: Final = 100
"""The characters of an expression that a message contains."""
_NO_OPERAND: Final = "syntax error: operand expected"
_BLANKS: Final = " \t\n"
_TOKEN: Final = re.compile(
    r"[ \t\n]*(?:(?P<number>[0-9]+#[0-9a-zA-Z@_]+|0[xX][0-9a-fA-F]*|[0-9][0-9a-zA-Z]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator><<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[<>=!*/%+\-&|^]=|[-+*/%<>=!~&|^?:(),\[\]]))"
)
_ASSIGNMENTS: Final = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])


class ArithmeticVariables(Protocol):
    """Where an expression reads and assigns variables; an index is that of an array's element."""

    def read(self, name: str, index: str | None) -> str | None: ...

    def assign(self, name: str, index: str | None, value: int) -> None: ...


def evaluate(text: str, variables: ArithmeticVariables) -> int:
    """Return the value of an expression; raise `DiscardError` if it is invalid."""
    return _Evaluation(text, variables).result()


class _BadOperand(Exception):
    """An operator cannot be applied to an operand; the message is in the words of dash and of bash."""


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise _BadOperand("division by zero", "division by 0")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise _BadOperand("expecting primary", "exponent less than 0")
    return pow(base, exponent, 2 * _LIMIT)


_OPERATIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": lambda left, right: left - right * _divide(left, right),
    "**": _power,
}
_LEVELS: Final[Mapping[str, int]] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 12,
}  # fmt: skip
"""The precedence of the binary operators."""


def wrap(value: int) -> int:
    """Return a number as one of 64 bits with a sign."""
    return (value + _LIMIT) % (2 * _LIMIT) - _LIMIT


def _number_of(text: str, expression: str) -> int:
    """Return a constant of an expression: decimal, octal with 0, hexadecimal with 0x, or BASE#DIGITS."""
    base, mark, digits = text.partition("#")
    try:
        if mark:
            return wrap(int(digits, int(base)))
        if text[:2] in ("0x", "0X"):
            return wrap(int(text[2:] or "0", 16))
        return wrap(int(text, 8 if text.startswith("0") else 10))
    except ValueError:
        is_base = not mark or (base.isdecimal() and 2 <= int(base[:3]) <= _MAX_BASE)
        problem = "value too great for base" if is_base else "invalid arithmetic base"
        raise _error(expression, "expecting EOF", problem, text, bash_text=text) from None


def _error(text: str, problem: str, bash: str, token: str, *, bash_text: str | None = None) -> DiscardError:
    """Return the error of an expression in the words of dash, and in those of bash, which names the token."""
    bash_text = (text if bash_text is None else bash_text).lstrip(" \t")
    return DiscardError(
        f'arithmetic expression: {problem}: "{text[:_MAX_SHOWN]}"',
        f'{bash_text[:_MAX_SHOWN]}: {bash} (error token is "{token[:_MAX_SHOWN]}")',
    )


class _Evaluation:
    def __init__(self, text: str, variables: ArithmeticVariables, outer: "_Evaluation | None" = None) -> None:
        """`outer` is the expression that reads a variable whose value is this one."""
        self._text = text
        self._variables = variables
        self._depth: int = 0 if outer is None else outer._depth + 1  # noqa: SLF001 - of its own class
        self._whole: _Evaluation = self if outer is None else outer._whole  # noqa: SLF001 - as above
        self._size = 0
        """The characters of an expression and of all values of variables that it evaluates."""
        self._whole._size += len(text)  # noqa: SLF001 - as above
        if len(text) > limits.MAX_ARITHMETIC:
            raise DiscardError("the arithmetic expression is too long")
        if (
            self._depth > limits.MAX_NESTED_ARITHMETIC or self._whole._size > limits.MAX_ARITHMETIC_IN_ALL  # noqa: SLF001 - as above
        ):
            raise DiscardError("expression recursion level exceeded")
        self._nesting = 0
        self._is_skipped = False
        """Whether the present operand has no effect, as behind `0 &&`."""
        self._starts: list[int] = []
        """The positions of the tokens in the text."""
        self._tokens = self._tokenize()
        self._position = 0

    def _tokenize(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        position = 0
        text = self._text.rstrip(_BLANKS)
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                token = self._text[position:].lstrip(_BLANKS)
                is_incremented = len(tokens) > 1 and tokens[-2][0] == "name" and tokens[-1][1] in ("++", "--")
                if tokens and (tokens[-1][0] != "operator" or is_incremented):
                    raise _error(
                        self._text, "expecting EOF", "syntax error: invalid arithmetic operator", token
                    )
                raise _error(self._text, "expecting primary", _NO_OPERAND, token)
            assert match.lastgroup is not None
            tokens.append((match.lastgroup, match[match.lastgroup]))
            self._starts.append(match.start(match.lastgroup))
            position = match.end()
        return tokens

    def _error(self, problem: str, bash: str, position: int | None = None) -> DiscardError:
        """Return the error at a token: the present one, or the last one at the end."""
        index = min(self._position if position is None else position, len(self._starts) - 1)
        return _error(self._text, problem, bash, self._text[self._starts[index] :] if index >= 0 else "")

    def _peek(self) -> str:
        """Return the operator that is next, or ""."""
        if self._position >= len(self._tokens):
            return ""
        kind, token = self._tokens[self._position]
        return token if kind == "operator" else ""

    def _expect(self, operator: str) -> None:
        if self._peek() != operator:
            words = "`:' expected for conditional expression" if operator == ":" else "missing `)'"
            if self._peek() in _ASSIGNMENTS:
                words = "attempted assignment to non-variable"
            raise self._error(f"expecting '{operator}'", words)
        self._position += 1

    def result(self) -> int:
        if not self._tokens:
            return 0
        value = self._comma()
        if self._position < len(self._tokens):
            is_assignment = self._peek() in _ASSIGNMENTS
            words = "attempted assignment to non-variable" if is_assignment else "syntax error in expression"
            raise self._error("expecting EOF", words)
        return value

    def _comma(self) -> int:
        value = self._assignment()
        while self._peek() == ",":
            self._position += 1
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        """Evaluate an assignment, or a conditional expression."""
        start = self._position
        if start < len(self._tokens) and self._tokens[start][0] == "name":
            name, index = self._variable()
            operator = self._peek()
            if operator in _ASSIGNMENTS:
                self._position += 1
                self._nesting += 1
                if self._nesting > limits.MAX_NESTED_ARITHMETIC:
                    raise DiscardError("expression recursion level exceeded")
                value = self._assignment()
                self._nesting -= 1
                if operator != "=" and not self._is_skipped:
                    value = self._apply_binary(operator[:-1], self._read(name, index), value, start + 2)
                return self._assign(name, index, value)
            self._position = start
        return self._conditional()

    def _conditional(self) -> int:
        self._nesting += 1
        if self._nesting > limits.MAX_NESTED_ARITHMETIC:
            raise DiscardError("expression recursion level exceeded")
        condition = self._binary(1)
        if self._peek() == "?":
            self._position += 1
            first = self._skipping(self._assignment, skips=not condition)
            self._expect(":")
            second = self._skipping(self._conditional, skips=bool(condition))
            condition = first if condition else second
        self._nesting -= 1
        return condition

    def _skipping(self, parse: Callable[[], int], *, skips: bool) -> int:
        before = self._is_skipped
        self._is_skipped = before or skips
        value = parse()
        self._is_skipped = before
        return value

    def _binary(self, level: int) -> int:
        left = self._unary()
        while (operator := self._peek()) in _LEVELS and _LEVELS[operator] >= level:
            self._position += 1
            following = _LEVELS[operator] + (operator != "**")
            if operator in ("&&", "||"):
                skips = bool(left) is (operator == "||")
                right = self._skipping(lambda following=following: self._binary(following), skips=skips)  # type: ignore[misc]
                left = int(bool(left) and bool(right)) if operator == "&&" else int(bool(left) or bool(right))
                continue
            position = self._position
            right = self._binary(following)
            left = 0 if self._is_skipped else self._apply_binary(operator, left, right, position)
        return left

    def _apply_binary(self, operator: str, left: int, right: int, position: int) -> int:
        """Apply an operator to operands, the second of which begins with the token at a position."""
        try:
            return wrap(_OPERATIONS[operator](left, right))
        except _BadOperand as error:
            problem, bash = error.args
            position = position if operator in "/%" else self._position - 1
            raise self._error(problem, bash, position) from None

    def _unary(self) -> int:
        signs: list[str] = []
        while self._peek() in ("-", "+", "!", "~", "++", "--"):
            operator = self._peek()
            self._position += 1
            if operator in ("++", "--"):
                if self._position < len(self._tokens) and self._tokens[self._position][0] == "name":
                    return self._apply(signs, self._increment(operator))
                operator = operator[0]
                signs.append(operator)
            signs.append(operator)
        return self._apply(signs, self._operand())

    @staticmethod
    def _apply(signs: list[str], value: int) -> int:
        for sign in reversed(signs):
            value = {"-": -value, "+": value, "!": int(not value), "~": ~value}[sign]
        return wrap(value)

    def _increment(self, operator: str) -> int:
        name, index = self._variable()
        value = wrap(self._read(name, index) + (1 if operator == "++" else -1))
        return self._assign(name, index, value)

    def _operand(self) -> int:
        if self._peek() == "(":
            self._position += 1
            value = self._comma()
            self._expect(")")
            return value
        if self._position >= len(self._tokens) or self._peek():
            raise self._error("expecting primary", _NO_OPERAND)
        kind, token = self._tokens[self._position]
        if kind == "number":
            self._position += 1
            return _number_of(token, self._text)
        name, index = self._variable()
        operator = self._peek()
        value = self._read(name, index)
        if operator in ("++", "--"):
            self._position += 1
            self._assign(name, index, wrap(value + (1 if operator == "++" else -1)))
        return value

    def _variable(self) -> tuple[str, str | None]:
        name = self._tokens[self._position][1]
        self._position += 1
        if self._peek() != "[":
            return name, None
        start = self._position + 1
        depth = 0
        while self._position < len(self._tokens):
            depth += {"[": 1, "]": -1}.get(self._peek(), 0)
            self._position += 1
            if depth == 0:
                return name, "".join(token for _, token in self._tokens[start : self._position - 1])
        raise self._error("expecting ']'", "bad array subscript")

    def _read(self, name: str, index: str | None) -> int:
        if self._is_skipped:
            return 0
        text = (self._variables.read(name, index) or "").strip(_BLANKS)
        if not text:
            return 0
        if text.isascii() and text.lstrip("-+").isdecimal() and not text.lstrip("-+").startswith("0"):
            return wrap(int(text[:20]))
        return _Evaluation(text, self._variables, self).result()

    def _assign(self, name: str, index: str | None, value: int) -> int:
        if not self._is_skipped:
            self._variables.assign(name, index, value)
        return value

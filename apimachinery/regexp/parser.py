"""A parser of patterns, equivalent to Go's package regexp/syntax with the flags of `regexp.Compile`.

https://pkg.go.dev/regexp/syntax has the grammar. The result is the pattern in the syntax of the matching engine, and its
estimated cost. A pattern that Go rejects raises a `RegexpError` with Go's message.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from . import operands
from .errors import Problem, RegexpError
from .escapes import Escapes
from .operands import UNBOUNDED, Flags, LeftParenthesis, Op, Operand

MAX_HEIGHT: Final = 1000
MAX_SIZE: Final = (128 << 20) // 40
"""The maximum number of instructions of a program in Go, where one has 40 bytes."""
MAX_COUNT: Final = 1000
"""The limits of Go: the height of a parse tree, and the count of a repetition (regexp/syntax/parse.go)."""

_PLAIN: Final = re.compile(r"[^\\^$.|?*+()\[{]+")
_COUNTS: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_DOT_COST: Final = 9
"""The number of instructions for any character in UTF-8."""


class ParsedPattern(NamedTuple):
    """A pattern that Go accepts."""

    pattern: str
    """The pattern in the syntax of the matching engine."""
    cost: int
    """The estimated size of the matching engine's program."""


def parse(pattern: str) -> ParsedPattern:
    """Parse a pattern; raise a `RegexpError` with Go's message if it is invalid."""
    parser = _Parser(pattern)
    try:
        return parser.parse()
    except RegexpError as error:
        error.position = parser.position
        raise


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._flags = Flags()
        self._stack: list[Operand] = []
        self._escapes = Escapes(text)
        self._names: set[str] = set()
        self._repeated_from = -1
        """The start of the repetition that ends at the current position; -1 if there is none."""
        self._symbols: Mapping[str, Callable[[], None]] = {
            "(": self._open,
            ")": self._close,
            "|": self._vertical_bar,
            "^": self._assertion,
            "$": self._assertion,
            ".": self._any_character,
            "[": self._class,
            "*": self._symbol_repeat,
            "+": self._symbol_repeat,
            "?": self._symbol_repeat,
            "{": self._counted_repeat,
            "\\": self._escape,
        }

    @property
    def position(self) -> int:
        return self._position

    def parse(self) -> ParsedPattern:
        text = self._text
        while self._position < len(text):
            start, repeated_from = self._position, self._repeated_from
            plain = _PLAIN.match(text, start)
            if plain is not None:
                self._literals(plain[0])
                self._position = plain.end()
            else:
                self._symbols[text[start]]()
            if self._repeated_from == repeated_from:
                self._repeated_from = -1
        self._close_alternation()
        if len(self._stack) != 1:
            raise RegexpError(Problem.MISSING_PARENTHESIS, text)
        return ParsedPattern(self._escapes.engine_pattern(), self._stack[0].cost)

    # --- operands

    def _push(self, operand: Operand) -> None:
        self._check_limits(operand)
        self._merge_literals()
        self._stack.append(operand)

    def _check_limits(self, operand: Operand) -> None:
        if operand.size > MAX_SIZE:
            raise RegexpError(Problem.TOO_LARGE, self._text)
        if operand.height > MAX_HEIGHT:
            raise RegexpError(Problem.NESTING_DEPTH, self._text)

    def _merge_literals(self) -> None:
        """Join the two literals on top of the stack: an operand follows, so the last character is not repeated."""
        if len(self._stack) < 2:
            return
        last, before = self._stack[-1], self._stack[-2]
        if last.op is Op.LITERAL and before.op is Op.LITERAL and last.folds == before.folds:
            del self._stack[-1]
            self._stack[-1] = self._literal(before.size + last.size, before.cost + last.cost)
            self._stack[-1].folds = before.folds

    def _literal(self, size: int, cost: int) -> Operand:
        return Operand(op=Op.LITERAL, size=size, cost=cost, folds=self._flags.ignore_case)

    def _literals(self, text: str) -> None:
        """Push literal characters. The last one is a separate operand, because a repetition applies to it alone."""
        each = 4 if self._flags.ignore_case else 1
        if len(text) > 1:
            self._push(self._literal(len(text) - 1, each * len(text[:-1].encode(errors="replace"))))
        self._push(self._literal(1, each * len(text[-1].encode(errors="replace"))))

    def _push_and_advance(self, operand: Operand, length: int) -> None:
        self._push(operand)
        self._position += length

    def _any_character(self) -> None:
        self._push_and_advance(Operand(op=Op.CLASS, cost=_DOT_COST), 1)

    def _assertion(self) -> None:
        self._push_and_advance(Operand(op=Op.ASSERTION), 1)

    def _class(self) -> None:
        end, cost = self._escapes.bracket_class(self._position)
        self._push_and_advance(Operand(op=Op.CLASS, cost=cost), end - self._position)

    def _escape(self) -> None:
        text, start = self._text, self._position
        following = text[start + 1 : start + 2]
        if following and following in "AbBz":
            self._push_and_advance(Operand(op=Op.ASSERTION), 2)
        elif following == "C":
            raise RegexpError(Problem.ESCAPE, "\\C")
        elif following == "Q":
            end = text.find("\\E", start + 2)
            quoted = text[start + 2 :] if end < 0 else text[start + 2 : end]
            if quoted:
                self._literals(quoted)
            self._position = len(text) if end < 0 else end + 2
        else:
            end, cost = self._escapes.named_class(start)
            if end > start:
                self._push_and_advance(Operand(op=Op.CLASS, cost=cost), end - start)
            else:
                _, end = self._escapes.character(start)
                self._push_and_advance(self._literal(1, 4), end - start)

    # --- repetitions

    def _symbol_repeat(self) -> None:
        start, symbol = self._position, self._text[self._position]
        self._repeat(start, start + 1, lambda inner: operands.star(inner, symbol=symbol))

    def _counted_repeat(self) -> None:
        start = self._position
        match = _COUNTS.match(self._text, start)
        if match is None:
            self._push_and_advance(self._literal(1, 1), 1)
            return
        minimum = _count(match[1])
        maximum = _count(match[3]) if match[3] else UNBOUNDED if match[2] else minimum
        if max(minimum, maximum) > MAX_COUNT or maximum not in (UNBOUNDED, max(minimum, maximum)):
            raise RegexpError(Problem.REPEAT_COUNT, match[0])
        end = self._repeat(start, match.end(), lambda inner: operands.repeat(inner, minimum, maximum))
        if max(minimum, maximum) >= 2 and self._stack[-1].copies > MAX_COUNT:
            raise RegexpError(Problem.REPEAT_COUNT, self._text[start:end])

    def _repeat(self, start: int, end: int, repeat: Callable[[Operand], Operand]) -> int:
        """Repeat the operand on top of the stack; `end` is that of the operator, before the `?` that makes it lazy."""
        if self._text.startswith("?", end):
            end += 1
        if self._repeated_from >= 0:
            raise RegexpError(Problem.REPEAT_OPERATOR, self._text[self._repeated_from : end])
        if not self._stack or self._stack[-1].is_pseudo:
            raise RegexpError(Problem.MISSING_ARGUMENT, self._text[start:end])
        operand = repeat(self._stack[-1])
        self._check_limits(operand)
        self._stack[-1] = operand
        self._position, self._repeated_from = end, start
        return end

    # --- groups and alternatives

    def _open(self) -> None:
        text, start = self._text, self._position
        if not text.startswith("(?", start):
            self._open_group(captures=True)
            self._position += 1
        elif _is_named(text, start):
            self._open_named(start)
        else:
            self._open_with_flags(start)

    def _open_group(self, *, captures: bool) -> None:
        self._push(LeftParenthesis(op=Op.LEFT_PARENTHESIS, captures=captures, flags=self._flags))

    def _open_named(self, start: int) -> None:
        text = self._text
        begin, end = text.index("<", start) + 1, text.find(">", start)
        if end < 0:
            raise RegexpError(Problem.NAMED_CAPTURE, text[start:])
        if not _NAME.fullmatch(text, begin, end):
            raise RegexpError(Problem.NAMED_CAPTURE, text[start : end + 1])
        self._open_group(captures=True)
        name = text[begin:end]
        if name in self._names:
            # Go accepts a name twice and finds the first group by it; RE2 refuses it.
            self._escapes.replace(start, end + 1, "(")
        self._names.add(name)
        self._position = end + 1

    def _open_with_flags(self, start: int) -> None:
        """Parse flags: `(?i)` applies to the rest of the enclosing group, `(?i:` opens a group."""
        text, position = self._text, start + 2
        ignore_case, negated, has_flag = self._flags.ignore_case, False, False
        while position < len(text):
            symbol = text[position]
            position += 1
            if symbol in "imsU":
                has_flag = True
                if symbol == "i":
                    ignore_case = not negated
            elif symbol == "-" and not negated:
                negated, has_flag = True, False
            elif symbol in ":)" and (has_flag or not negated):
                if symbol == ":":
                    self._open_group(captures=False)
                self._flags, self._position = Flags(ignore_case=ignore_case), position
                return
            else:
                break
        raise RegexpError(Problem.PERL_OPERATOR, text[start:position])

    def _vertical_bar(self) -> None:
        self._close_concatenation()
        self._push(Operand(op=Op.VERTICAL_BAR))
        self._position += 1

    def _close(self) -> None:
        self._close_alternation()
        if len(self._stack) < 2:
            raise RegexpError(Problem.UNEXPECTED_PARENTHESIS, self._text)
        inner, opened = self._stack.pop(), self._stack.pop()
        assert isinstance(opened, LeftParenthesis)
        self._flags = opened.flags
        self._push(operands.capture(inner) if opened.captures else inner)
        self._position += 1

    def _close_concatenation(self) -> None:
        self._merge_literals()
        first = len(self._stack)
        while first and not self._stack[first - 1].is_pseudo:
            first -= 1
        parts = self._stack[first:]
        del self._stack[first:]
        operand = operands.concat(parts)
        self._check_limits(operand)
        self._stack.append(operand)

    def _close_alternation(self) -> None:
        self._close_concatenation()
        alternatives = [self._stack.pop()]
        while self._stack and self._stack[-1].op is Op.VERTICAL_BAR:
            del self._stack[-1]
            alternatives.append(self._stack.pop())
        operand = operands.alternate(alternatives[::-1])
        self._check_limits(operand)
        self._stack.append(operand)


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 5 else MAX_COUNT + 1


def _is_named(text: str, start: int) -> bool:
    """Return whether a named group starts here. As in Go, at least one more character must follow."""
    if text.startswith("(?P<", start):
        return len(text) > start + 4
    return text.startswith("(?<", start) and len(text) > start + 3

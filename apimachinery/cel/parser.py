"""Tokens to an expression, with macros expanded. A syntax error raises `UnexpectedToken`; `recovery.py` finds the reason."""

from collections.abc import Callable, Sized

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.ast import (
    Call,
    CreateList,
    CreateMap,
    CreateStruct,
    Entry,
    Expr,
    Ident,
    Literal,
    Select,
    Unspecified,
)
from mockube.apimachinery.cel.lexer import EOF, ESCAPED, IDENTIFIER, Token
from mockube.apimachinery.cel.literals import (
    BadLiteral,
    double_literal,
    int_literal,
    uint_literal,
    unquote,
    unquote_bytes,
)
from mockube.apimachinery.cel.macros import MACROS, MacroError, Macros
from mockube.apimachinery.cel.source import Issue

MAX_DEPTH = 250
"""How often a rule of the grammar may be within itself."""
RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_LEVELS = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 0),
    **dict.fromkeys("+-", 1),
    **dict.fromkeys("*/%", 2),
}
"""How tightly operators bind."""
_FUNCTIONS = {operator: f"_{operator}_" for operator in _LEVELS} | {"in": "@in"}


class UnexpectedToken(Exception):
    """The tokens are no expression."""


class TooDeep(Exception):
    """The expression is nested more often than the limit."""


class Parser:
    """Reads one expression by recursive descent. Errors that do not end the reading are collected in `issues`."""

    def __init__(self, tokens: list[Token], macros: Macros = MACROS) -> None:
        self.tokens = tokens
        self.position = 0
        self.issues: list[Issue] = []
        self.macros = macros
        self.depth = 0

    def parse(self) -> Expr:
        expr = self.expr()
        if self.kind != EOF:
            raise UnexpectedToken
        return expr

    @property
    def kind(self) -> str:
        return self.tokens[self.position].kind

    def take(self, kind: str) -> Token:
        token = self.tokens[self.position]
        if token.kind != kind:
            raise UnexpectedToken
        self.position += 1
        return token

    def skip(self, kind: str) -> bool:
        if self.tokens[self.position].kind != kind:
            return False
        self.position += 1
        return True

    def report(self, offset: int, message: str) -> Expr:
        self.issues.append(Issue(offset, message))
        return Unspecified(offset)

    def expr(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep
        expr = self.logic("||")
        if self.kind == "?":
            offset = self.take("?").start
            if_true = self.logic("||")
            self.take(":")
            expr = Call(offset, "_?_:_", None, [expr, if_true, self.expr()])
        self.depth -= 1
        return expr

    def logic(self, operator: str) -> Expr:
        """Read what `||` or `&&` joins. The calls are balanced, as cel-go does it."""
        terms: list[Expr] = []
        offsets: list[int] = []
        while True:
            terms.append(self.logic("&&") if operator == "||" else self.chain(0))
            if self.kind != operator:
                return balance(f"_{operator}_", terms, offsets)
            offsets.append(self.take(operator).start)

    def chain(self, level: int) -> Expr:
        """Read operands with operators of at least this level between them, those of a level from left to right."""
        left = self.unary()
        length = 0
        while True:
            operator_level = _LEVELS.get(self.kind, -1)
            if operator_level < level:
                return left
            length += 1
            if self.depth + length > MAX_DEPTH:
                raise TooDeep
            token = self.take(self.kind)
            left = Call(token.start, _FUNCTIONS[token.kind], None, [left, self.chain(operator_level + 1)])

    def unary(self) -> Expr:
        token = self.tokens[self.position]
        if token.kind == "!" or (token.kind == "-" and not self._is_negative_number()):
            count = 0
            while self.skip(token.kind):
                count += 1
            operand = self.member()
            if count % 2 == 0:
                return operand
            return Call(token.start, f"{token.kind}_", None, [operand])
        return self.member()

    def _is_negative_number(self) -> bool:
        return self.tokens[self.position + 1].kind in ("NUM_INT", "NUM_FLOAT")

    def member(self) -> Expr:
        expr = self.primary()
        length = 0
        while self.kind in (".", "["):
            length += 1
            if self.depth + length > MAX_DEPTH:
                raise TooDeep
            expr = self.selection(expr) if self.kind == "." else self.index(expr)
        return expr

    def selection(self, operand: Expr) -> Expr:
        dot = self.take(".").start
        optional = self.skip("?")
        token = self.tokens[self.position]
        if token.kind == ESCAPED:
            self.position += 1
            self.report(token.start, "unsupported syntax: '`'")
            return Select(dot, operand, "")
        self.take("IDENTIFIER")
        if optional:
            name = Literal(token.start, token.text, type=types.STRING)
            return Call(dot, "_?._", None, [operand, name])
        if self.kind == "(":
            return self.call(token.text, operand)
        return Select(dot, operand, token.text)

    def index(self, operand: Expr) -> Expr:
        offset = self.take("[").start
        function = "_[?_]" if self.skip("?") else "_[_]"
        index = self.expr()
        self.take("]")
        return Call(offset, function, None, [operand, index])

    def call(self, function: str, target: Expr | None) -> Expr:
        offset = self.take("(").start
        args: list[Expr] = []
        if self.kind != ")":
            args.append(self.expr())
            while self.skip(","):
                args.append(self.expr())
        self.take(")")
        macro = self.macros.get((function, len(args), target is not None))
        expanded = None
        if macro is not None:
            try:
                expanded = macro(offset, target, args)
            except MacroError as error:
                return self.report(error.offset, str(error))
        return expanded or Call(offset, function, target, args)

    def primary(self) -> Expr:
        token = self.tokens[self.position]
        if token.kind in (IDENTIFIER, "."):
            return self.name(token)
        read = _PRIMARIES.get(token.kind)
        if read is None:
            raise UnexpectedToken
        return read(self, token)

    def name(self, first: Token) -> Expr:
        """Read an identifier, a call, or a message with its fields."""
        leading = "." if self.skip(".") else ""
        token = self.take("IDENTIFIER")
        end = self.position
        while self.tokens[end].kind == "." and self.tokens[end + 1].kind == IDENTIFIER:
            end += 2
        if self.tokens[end].kind == "{":
            name = leading + "".join(part.text for part in self.tokens[self.position - 1 : end])
            self.position = end
            return self.struct(name)
        if token.text in RESERVED:
            return self._reserved_identifier(first, token)
        if self.kind == "(":
            return self.call(leading + token.text, None)
        return Ident(token.start, leading + token.text)

    def _reserved_identifier(self, first: Token, token: Token) -> Expr:
        if self.kind == "(":
            issues = len(self.issues)
            self.call(token.text, None)
            del self.issues[issues:]
        return self.report(first.start, f"reserved identifier: {token.text}")

    def begins(self, end: str, before: Sized) -> bool:
        """Whether another element begins, behind its comma if it is not the first."""
        if not before:
            return self.kind not in (end, ",")
        if self.kind != "," or self.tokens[self.position + 1].kind == end:
            return False
        self.take(",")
        return True

    def struct(self, name: str) -> Expr:
        offset = self.take("{").start
        entries: list[Entry] = []
        while self.begins("}", entries):
            optional = self.skip("?")
            field = self.tokens[self.position]
            if field.kind == ESCAPED:
                self.position += 1
                self.report(field.start, "unsupported syntax: '`'")
            else:
                self.take("IDENTIFIER")
            colon = self.take(":").start
            entries.append(Entry(colon, field.text, self.expr(), optional))
        self.skip(",")
        self.take("}")
        return CreateStruct(offset, name, entries)

    def parenthesis(self, _token: Token) -> Expr:
        self.take("(")
        expr = self.expr()
        self.take(")")
        return expr

    def list(self, _token: Token) -> Expr:
        offset = self.take("[").start
        elements: list[Expr] = []
        optional: set[int] = set()
        while self.begins("]", elements):
            if self.skip("?"):
                optional.add(len(elements))
            elements.append(self.expr())
        self.skip(",")
        self.take("]")
        return CreateList(offset, elements, frozenset(optional))

    def map(self, _token: Token) -> Expr:
        offset = self.take("{").start
        entries: list[Entry] = []
        while self.begins("}", entries):
            optional = self.skip("?")
            key = self.expr()
            colon = self.take(":").start
            entries.append(Entry(colon, key, self.expr(), optional))
        self.skip(",")
        self.take("}")
        return CreateMap(offset, entries)

    def literal(self, token: Token) -> Expr:
        self.position += 1
        value = _LITERALS.get(token.kind)
        text = token.text
        if token.kind == "-":
            value = _LITERALS.get(self.kind) if self.kind in ("NUM_INT", "NUM_FLOAT") else None
            text += self.tokens[self.position].text
            self.position += 1
        if value is None:
            raise UnexpectedToken
        read, type_ = value
        try:
            return Literal(token.start, read(text), type=type_)
        except BadLiteral as error:
            return self.report(token.start, str(error))


def balance(function: str, terms: list[Expr], offsets: list[int]) -> Expr:
    """Join terms by calls of two arguments, in a tree that is as deep on both sides."""
    if not offsets:
        return terms[0]
    middle = len(offsets) // 2
    left = balance(function, terms[: middle + 1], offsets[:middle])
    right = balance(function, terms[middle + 1 :], offsets[middle + 1 :])
    return Call(offsets[middle], function, None, [left, right])


_LITERALS: dict[str, tuple[Callable[[str], object], types.Type]] = {
    "NUM_INT": (int_literal, types.INT),
    "NUM_UINT": (uint_literal, types.UINT),
    "NUM_FLOAT": (double_literal, types.DOUBLE),
    "STRING": (unquote, types.STRING),
    "BYTES": (unquote_bytes, types.BYTES),
    "true": (lambda _: True, types.BOOL),
    "false": (lambda _: False, types.BOOL),
    "null": (lambda _: None, types.NULL),
}
_PRIMARIES: dict[str, Callable[[Parser, Token], Expr]] = {
    **dict.fromkeys((*_LITERALS, "-"), Parser.literal),
    "(": Parser.parenthesis,
    "[": Parser.list,
    "{": Parser.map,
}

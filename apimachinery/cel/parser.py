"""The parser, which expands macros. It raises UnexpectedToken for a syntax error; `recovery.py` then finds the messages."""

from collections.abc import Callable, Sized

from . import literals, types
from .ast import (
    Call,
    CreateList,
    CreateMap,
    CreateStruct,
    EntryExpr,
    Expr,
    Ident,
    Literal,
    Select,
    Unspecified,
)
from .lexer import EOF, ESCAPED, IDENTIFIER, Token
from .literals import BadLiteral
from .macros import MACROS, MacroError, Macros
from .source import Issue

MAX_DEPTH = 250
"""The maximum recursion depth of a rule of the grammar."""
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
_PRECEDENCE = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 0),
    **dict.fromkeys("+-", 1),
    **dict.fromkeys("*/%", 2),
}
"""The precedence of binary operators; a higher one binds tighter."""
_FUNCTIONS = {operator: f"_{operator}_" for operator in _PRECEDENCE} | {"in": "@in"}


class UnexpectedToken(Exception):
    """The tokens are not an expression."""


class TooDeep(Exception):
    """The expression is nested deeper than the limit."""


class Parser:
    """A recursive descent parser of one expression. Errors that do not end the parsing are collected in `issues`."""

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

    def expect(self, kind: str) -> Token:
        token = self.tokens[self.position]
        if token.kind != kind:
            raise UnexpectedToken
        self.position += 1
        return token

    def accept(self, kind: str) -> bool:
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
            offset = self.expect("?").start
            if_true = self.logic("||")
            self.expect(":")
            expr = Call(offset, "_?_:_", None, [expr, if_true, self.expr()])
        self.depth -= 1
        return expr

    def logic(self, operator: str) -> Expr:
        """Parse operands of `||` or `&&`. The calls are balanced, as in cel-go."""
        terms: list[Expr] = []
        offsets: list[int] = []
        while True:
            terms.append(self.logic("&&") if operator == "||" else self.chain(0))
            if self.kind != operator:
                return balance(f"_{operator}_", terms, offsets)
            offsets.append(self.expect(operator).start)

    def chain(self, precedence: int) -> Expr:
        """Parse left-associative binary operators of at least this precedence."""
        left = self.unary()
        length = 0
        while True:
            operator_precedence = _PRECEDENCE.get(self.kind, -1)
            if operator_precedence < precedence:
                return left
            length += 1
            if self.depth + length > MAX_DEPTH:
                raise TooDeep
            token = self.expect(self.kind)
            left = Call(
                token.start, _FUNCTIONS[token.kind], None, [left, self.chain(operator_precedence + 1)]
            )

    def unary(self) -> Expr:
        token = self.tokens[self.position]
        if token.kind == "!" or (token.kind == "-" and not self._is_negative_number()):
            count = 0
            while self.accept(token.kind):
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
        dot = self.expect(".").start
        optional = self.accept("?")
        token = self.tokens[self.position]
        if token.kind == ESCAPED:
            self.position += 1
            self.report(token.start, "unsupported syntax: '`'")
            return Select(dot, operand, "")
        self.expect("IDENTIFIER")
        if optional:
            name = Literal(token.start, token.text, type=types.STRING)
            return Call(dot, "_?._", None, [operand, name])
        if self.kind == "(":
            return self.call(token.text, operand)
        return Select(dot, operand, token.text)

    def index(self, operand: Expr) -> Expr:
        offset = self.expect("[").start
        function = "_[?_]" if self.accept("?") else "_[_]"
        index = self.expr()
        self.expect("]")
        return Call(offset, function, None, [operand, index])

    def call(self, function: str, target: Expr | None) -> Expr:
        offset = self.expect("(").start
        args: list[Expr] = []
        if self.kind != ")":
            args.append(self.expr())
            while self.accept(","):
                args.append(self.expr())
        self.expect(")")
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
        """Parse an identifier, a call, or a struct with its fields."""
        leading = "." if self.accept(".") else ""
        token = self.expect("IDENTIFIER")
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

    def has_next_element(self, end: str, elements: Sized) -> bool:
        """Return whether another element follows, and consume the comma before it."""
        if not elements:
            return self.kind not in (end, ",")
        if self.kind != "," or self.tokens[self.position + 1].kind == end:
            return False
        self.expect(",")
        return True

    def struct(self, name: str) -> Expr:
        offset = self.expect("{").start
        entries: list[EntryExpr] = []
        while self.has_next_element("}", entries):
            optional = self.accept("?")
            field = self.tokens[self.position]
            if field.kind == ESCAPED:
                self.position += 1
                self.report(field.start, "unsupported syntax: '`'")
            else:
                self.expect("IDENTIFIER")
            colon = self.expect(":").start
            entries.append(EntryExpr(colon, field.text, self.expr(), optional))
        self.accept(",")
        self.expect("}")
        return CreateStruct(offset, name, entries)

    def parenthesis(self, _token: Token) -> Expr:
        self.expect("(")
        expr = self.expr()
        self.expect(")")
        return expr

    def list(self, _token: Token) -> Expr:
        offset = self.expect("[").start
        elements: list[Expr] = []
        optional: set[int] = set()
        while self.has_next_element("]", elements):
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expr())
        self.accept(",")
        self.expect("]")
        return CreateList(offset, elements, frozenset(optional))

    def map(self, _token: Token) -> Expr:
        offset = self.expect("{").start
        entries: list[EntryExpr] = []
        while self.has_next_element("}", entries):
            optional = self.accept("?")
            key = self.expr()
            colon = self.expect(":").start
            entries.append(EntryExpr(colon, key, self.expr(), optional))
        self.accept(",")
        self.expect("}")
        return CreateMap(offset, entries)

    def literal(self, token: Token) -> Expr:
        self.position += 1
        reader = _LITERALS.get(token.kind)
        text = token.text
        if token.kind == "-":
            reader = _LITERALS.get(self.kind) if self.kind in ("NUM_INT", "NUM_FLOAT") else None
            text += self.tokens[self.position].text
            self.position += 1
        if reader is None:
            raise UnexpectedToken
        read, type_ = reader
        try:
            return Literal(token.start, read(text), type=type_)
        except BadLiteral as error:
            return self.report(token.start, str(error))


def balance(function: str, terms: list[Expr], offsets: list[int]) -> Expr:
    """Return the terms as a balanced tree of calls with two arguments."""
    if not offsets:
        return terms[0]
    middle = len(offsets) // 2
    left = balance(function, terms[: middle + 1], offsets[:middle])
    right = balance(function, terms[middle + 1 :], offsets[middle + 1 :])
    return Call(offsets[middle], function, None, [left, right])


_LITERALS: dict[str, tuple[Callable[[str], object], types.Type]] = {
    "NUM_INT": (literals.int_literal, types.INT),
    "NUM_UINT": (literals.uint_literal, types.UINT),
    "NUM_FLOAT": (literals.double_literal, types.DOUBLE),
    "STRING": (literals.unquote, types.STRING),
    "BYTES": (literals.unquote_bytes, types.BYTES),
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

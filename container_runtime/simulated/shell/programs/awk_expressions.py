"""The parser of awk's expressions."""

from collections.abc import Sequence
from typing import Final

from mockube.container_runtime.simulated.shell import limits

from .awk_lexer import AwkError, AwkNode, AwkToken

_ASSIGNMENTS: Final = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "^="])
_COMPARISONS: Final = frozenset(["<", "<=", "==", "!=", ">", ">="])
_LEFT_VALUES: Final = frozenset(["name", "field", "element"])


class AwkExpressionParser:
    def __init__(self, tokens: Sequence[AwkToken]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0
        self._in_print = False
        """Whether `>` is a redirection."""
        self._in_for = False
        """Whether `in` ends an expression."""

    # --- tokens

    def _peek(self) -> AwkToken:
        return self._tokens[self._position]

    def _is_operator(self, *texts: str) -> bool:
        token = self._peek()
        return token.kind == "operator" and token.text in texts

    def _accept(self, text: str, kind: str = "operator") -> bool:
        token = self._peek()
        if token.kind != kind or token.text != text:
            return False
        self._position += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error()

    def _error(self) -> AwkError:
        return AwkError(f"syntax error at {self._peek().text or 'the end'!r}")

    def _skip_lines(self) -> None:
        while self._is_operator("\n"):
            self._position += 1

    def _skip_ends(self) -> None:
        while self._is_operator("\n", ";"):
            self._position += 1

    # --- expressions

    def _expression_list(self) -> list[AwkNode]:
        nodes = [self._expression()]
        while self._accept(","):
            self._skip_lines()
            nodes.append(self._expression())
        return nodes

    def _expression(self) -> AwkNode:
        self._depth += 1
        if self._depth > limits.MAX_NESTED_AWK:
            raise AwkError("operands are nested too deeply")
        node = self._conditional()
        if self._peek().kind == "operator" and self._peek().text in _ASSIGNMENTS:
            if node.kind not in _LEFT_VALUES:
                raise self._error()
            operator = self._peek().text
            self._position += 1
            self._skip_lines()
            node = AwkNode("assign", operator[:-1], (node, self._expression()))
        self._depth -= 1
        return node

    def _conditional(self) -> AwkNode:
        condition = self._or()
        if not self._accept("?"):
            return condition
        self._skip_lines()
        first = self._expression()
        self._skip_lines()
        self._expect(":")
        self._skip_lines()
        return AwkNode("conditional", "", (condition, first, self._expression()))

    def _or(self) -> AwkNode:
        node = self._and()
        while self._accept("||"):
            self._skip_lines()
            node = AwkNode("or", "", (node, self._and()))
        return node

    def _and(self) -> AwkNode:
        node = self._membership()
        while self._accept("&&"):
            self._skip_lines()
            node = AwkNode("and", "", (node, self._membership()))
        return node

    def _membership(self) -> AwkNode:
        node = self._match()
        while not self._in_for and self._accept("in", "keyword"):
            keys = node.nodes if node.kind == "group" else (node,)
            node = AwkNode("in", self._peek().text, keys)
            self._position += 1
        return node

    def _match(self) -> AwkNode:
        node = self._comparison()
        while self._is_operator("~", "!~"):
            operator = self._peek().text
            self._position += 1
            node = AwkNode("match", operator, (node, self._comparison()))
        return node

    def _comparison(self) -> AwkNode:
        node = self._concatenation()
        token = self._peek()
        if (
            token.kind == "operator"
            and token.text in _COMPARISONS
            and not (self._in_print and token.text == ">")
        ):
            self._position += 1
            return AwkNode("compare", token.text, (node, self._concatenation()))
        while self._is_operator("|") and self._tokens[self._position + 1] == AwkToken("keyword", "getline"):
            raise AwkError("commands for getline are not simulated")
        return node

    def _concatenation(self) -> AwkNode:
        node = self._sum()
        while self._begins_operand():
            node = AwkNode("concatenate", "", (node, self._sum()))
        return node

    def _begins_operand(self) -> bool:
        token = self._peek()
        if token.kind in ("number", "string", "name", "call", "function", "regex"):
            return True
        return token.kind == "operator" and token.text in ("$", "!", "(", "-", "+", "++", "--")

    def _sum(self) -> AwkNode:
        node = self._product()
        while self._is_operator("+", "-"):
            operator = self._peek().text
            self._position += 1
            node = AwkNode("arithmetic", operator, (node, self._product()))
        return node

    def _product(self) -> AwkNode:
        node = self._unary()
        while self._is_operator("*", "/", "%"):
            operator = self._peek().text
            self._position += 1
            node = AwkNode("arithmetic", operator, (node, self._unary()))
        return node

    def _unary(self) -> AwkNode:
        self._depth += 1
        if self._depth > limits.MAX_NESTED_AWK:
            raise AwkError("operands are nested too deeply")
        node: AwkNode | None = None
        for operator in ("!", "-", "+"):
            if self._accept(operator):
                node = AwkNode("unary", operator, (self._unary(),))
                break
        self._depth -= 1
        return self._power() if node is None else node

    def _power(self) -> AwkNode:
        node = self._postfix()
        if self._accept("^"):
            return AwkNode("arithmetic", "^", (node, self._unary()))
        return node

    def _postfix(self) -> AwkNode:
        for operator in ("++", "--"):
            if self._accept(operator):
                target = self._primary()
                if target.kind not in _LEFT_VALUES:
                    raise self._error()
                return AwkNode("before", operator, (target,))
        node = self._primary()
        if node.kind in _LEFT_VALUES:
            for operator in ("++", "--"):
                if self._accept(operator):
                    return AwkNode("after", operator, (node,))
        return node

    def _primary(self) -> AwkNode:
        token = self._peek()
        self._position += 1
        if token.kind in ("number", "string", "regex"):
            return AwkNode(token.kind, token.text)
        if token.kind in ("name", "call", "function"):
            return self._name_or_call(token)
        if token == AwkToken("operator", "$"):
            return AwkNode("field", "", (self._postfix_of_field(),))
        if token == AwkToken("operator", "("):
            return self._group()
        if token == AwkToken("keyword", "getline"):
            return self._getline()
        self._position -= 1
        raise self._error()

    def _name_or_call(self, token: AwkToken) -> AwkNode:
        if token.kind == "name":
            if self._is_operator("["):
                return AwkNode("element", token.text, self._subscripts())
            return AwkNode("name", token.text)
        kind = "call" if token.kind == "call" else "builtin"
        if self._accept("("):
            return AwkNode(kind, token.text, self._arguments())
        if token.text != "length":
            raise self._error()
        return AwkNode(kind, token.text)

    def _postfix_of_field(self) -> AwkNode:
        for operator in ("++", "--"):
            if self._accept(operator):
                return AwkNode("before", operator, (self._primary(),))
        if self._is_operator("-", "!", "+"):
            return self._unary()
        return self._primary()

    def _group(self) -> AwkNode:
        before, self._in_print = self._in_print, False
        nodes = self._expression_list()
        self._in_print = before
        self._expect(")")
        is_list = len(nodes) > 1
        return AwkNode("group", "", tuple(nodes)) if is_list else AwkNode("parenthesis", "", tuple(nodes))

    def _subscripts(self) -> tuple[AwkNode, ...]:
        self._expect("[")
        before, self._in_print = self._in_print, False
        nodes = self._expression_list()
        self._in_print = before
        self._expect("]")
        return tuple(nodes)

    def _arguments(self) -> tuple[AwkNode, ...]:
        before, self._in_print = self._in_print, False
        self._skip_lines()
        nodes = [] if self._is_operator(")") else self._expression_list()
        self._skip_lines()
        self._in_print = before
        self._expect(")")
        return tuple(nodes)

    def _getline(self) -> AwkNode:
        target = AwkNode("none")
        if self._peek().kind == "name" or self._is_operator("$"):
            target = self._primary()
        source = (self._primary(),) if self._accept("<") else ()
        return AwkNode("getline", "", (target, *source))

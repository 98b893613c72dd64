"""The parser of awk's programs."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from mockube.container_runtime.simulated.shell import limits

from .awk_expressions import AwkExpressionParser
from .awk_lexer import AwkError, AwkNode, AwkToken, tokenize

_ENDS: Final = frozenset([";", "\n", "}"])


class Rule(Struct, frozen=True):
    """`pattern { action }`; without an action, the record is printed."""

    patterns: tuple[AwkNode, ...]
    action: AwkNode | None


class AwkFunction(Struct, frozen=True):
    parameters: tuple[str, ...]
    body: AwkNode


class AwkProgram(Struct):
    begin: list[AwkNode] = field(default_factory=list)
    end: list[AwkNode] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    functions: dict[str, AwkFunction] = field(default_factory=dict)


def parse_program(text: str) -> AwkProgram:
    return _Parser(tokenize(text)).program()


class _Parser(AwkExpressionParser):
    # --- the program

    def program(self) -> AwkProgram:
        program = AwkProgram()
        self._skip_ends()
        while self._peek().kind != "end":
            self._item(program)
            self._skip_ends()
        return program

    def _item(self, program: AwkProgram) -> None:
        for word, actions in (("BEGIN", program.begin), ("END", program.end)):
            if self._accept(word, "keyword"):
                actions.append(self._block())
                return
        if self._accept("function", "keyword") or self._accept("func", "keyword"):
            self._function(program)
            return
        patterns: list[AwkNode] = []
        if not self._is_operator("{"):
            patterns.append(self._expression())
            if self._accept(","):
                self._skip_lines()
                patterns.append(self._expression())
        action = self._block() if self._is_operator("{") else None
        program.rules.append(Rule(tuple(patterns), action))

    def _function(self, program: AwkProgram) -> None:
        token = self._peek()
        if token.kind not in ("name", "call"):
            raise self._error()
        self._position += 1
        self._expect("(")
        parameters = []
        while not self._accept(")"):
            parameters.append(self._peek().text)
            self._position += 1
            self._accept(",")
            self._skip_lines()
        self._skip_lines()
        program.functions[token.text] = AwkFunction(tuple(parameters), self._block())

    # --- statements

    def _block(self) -> AwkNode:
        self._expect("{")
        statements = []
        self._skip_ends()
        while not self._accept("}"):
            statements.append(self._statement())
            self._skip_ends()
        return AwkNode("block", "", tuple(statements))

    def _statement(self) -> AwkNode:
        self._depth += 1
        if self._depth > limits.MAX_NESTED_AWK:
            raise AwkError("statements are nested too deeply")
        node = self._any_statement()
        self._depth -= 1
        return node

    def _any_statement(self) -> AwkNode:
        if self._is_operator("{"):
            return self._block()
        if self._accept(";"):
            return AwkNode("block")
        token = self._peek()
        compound: dict[str, Callable[[], AwkNode]] = {
            "if": self._if,
            "while": self._while,
            "do": self._do,
            "for": self._for,
        }
        if token.kind == "keyword" and token.text in compound:
            self._position += 1
            return compound[token.text]()
        node = self._simple_statement()
        if not (self._accept(";") or self._accept("\n") or self._is_operator("}")):
            raise self._error()
        return node

    def _body(self) -> AwkNode:
        self._skip_lines()
        return self._statement()

    def _condition(self) -> AwkNode:
        self._expect("(")
        node = self._expression()
        self._expect(")")
        return node

    def _if(self) -> AwkNode:
        condition = self._condition()
        body = self._body()
        position = self._position
        self._skip_ends()
        if self._accept("else", "keyword"):
            return AwkNode("if", "", (condition, body, self._body()))
        self._position = position
        return AwkNode("if", "", (condition, body))

    def _while(self) -> AwkNode:
        condition = self._condition()
        return AwkNode("while", "", (condition, self._body()))

    def _do(self) -> AwkNode:
        body = self._body()
        self._skip_ends()
        if not self._accept("while", "keyword"):
            raise self._error()
        return AwkNode("do", "", (body, self._condition()))

    def _for(self) -> AwkNode:
        self._expect("(")
        if self._tokens[self._position + 1] == AwkToken("keyword", "in"):
            name, array = self._peek(), self._tokens[self._position + 2]
            self._position += 3
            if self._accept(")"):
                return AwkNode("each", f"{name.text} {array.text}", (self._body(),))
            self._position -= 3
        empty = AwkNode("block")
        start = empty if self._is_operator(";") else self._simple_statement()
        self._expect(";")
        self._skip_lines()
        condition = AwkNode("number", "1") if self._is_operator(";") else self._expression()
        self._expect(";")
        self._skip_lines()
        step = empty if self._is_operator(")") else self._simple_statement()
        self._expect(")")
        return AwkNode("for", "", (start, condition, step, self._body()))

    def _simple_statement(self) -> AwkNode:
        token = self._peek()
        if token.kind == "keyword" and token.text not in ("getline", "in"):
            self._position += 1
            match token.text:
                case "print" | "printf":
                    return self._print(token.text)
                case "next" | "break" | "continue" | "nextfile":
                    return AwkNode(token.text)
                case "exit" | "return":
                    ends = self._is_operator(*_ENDS)
                    return AwkNode(token.text, "", () if ends else (self._expression(),))
                case "delete":
                    name = self._peek().text
                    self._position += 1
                    return AwkNode("delete", name, self._subscripts() if self._is_operator("[") else ())
                case _:
                    self._position -= 1
                    raise self._error()
        return AwkNode("expression", "", (self._expression(),))

    def _print(self, kind: str) -> AwkNode:
        before, self._in_print = self._in_print, True
        arguments: tuple[AwkNode, ...] = ()
        if not self._is_operator(*_ENDS, ">", ">>", "|"):
            arguments = tuple(self._expression_list())
            if len(arguments) == 1 and arguments[0].kind == "group":
                arguments = arguments[0].nodes
        target = AwkNode("none")
        for mark in (">", ">>", "|"):
            if self._accept(mark):
                target = AwkNode("target", mark, (self._concatenation(),))
                break
        self._in_print = before
        return AwkNode(kind, "", (target, *arguments))

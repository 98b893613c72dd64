"""The grammar of CEL as a network of states, as in ANTLR, from which syntax errors list the expected tokens.

It is used only for expressions that `parser.py` cannot parse.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, field

from .lexer import EOF

EPSILON: Final = ""
TOKENS: Final = (
    *(EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-"),
    *("!", "?", ":", "+", "*", "/", "%", "true", "false", "null"),
    *("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"),
)
"""All tokens, in the order in which messages list them."""


class StateKind(Enum):
    BASIC = auto()
    BLOCK_START = auto()
    STAR_ENTRY = auto()
    STAR_BACK = auto()
    PLUS_BACK = auto()
    RULE_STOP = auto()


class Edge(NamedTuple):
    """A transition to another state: without a token, by a token, by a rule, or by a minimum precedence."""

    target: "ATNState"
    tokens: frozenset[str] = frozenset()
    rule: str = ""
    precedence: int = -1
    """The precedence with which the rule is called, or the minimum precedence."""


class ATNState(Struct, eq=False):
    """A state of the network, in a rule of the grammar."""

    kind: StateKind
    rule: str
    edges: list[Edge] = field(default_factory=list)


Run = Callable[["RuleParser"], None]
"""Parses an element."""


class Element(NamedTuple):
    """A part of a rule: its first and last state, and the function that parses it."""

    start: ATNState
    end: ATNState
    run: Run


class RuleParser:
    """The parser that elements call; `recovery.py` implements it."""

    def match(self, state: ATNState, tokens: frozenset[str]) -> None:
        raise NotImplementedError

    def call(self, state: ATNState, rule: str, precedence: int) -> None:
        raise NotImplementedError

    def sync(self, state: ATNState) -> None:
        raise NotImplementedError

    def predict(self, state: ATNState) -> int:
        raise NotImplementedError

    def next_is(self, tokens: frozenset[str]) -> bool:
        raise NotImplementedError


ElementFactory = Callable[[str], Element]
"""Creates an element of the rule with the name."""


def token(*tokens: str) -> ElementFactory:
    def make(rule: str) -> Element:
        start, end = ATNState(StateKind.BASIC, rule), ATNState(StateKind.BASIC, rule)
        kinds = frozenset(tokens)
        start.edges.append(Edge(end, kinds))
        return Element(start, end, lambda parser: parser.match(start, kinds))

    return make


def rule_call(name: str, precedence: int = 0) -> ElementFactory:
    def make(rule: str) -> Element:
        start, end = ATNState(StateKind.BASIC, rule), ATNState(StateKind.BASIC, rule)
        start.edges.append(Edge(end, rule=name, precedence=precedence))
        return Element(start, end, lambda parser: parser.call(start, name, precedence))

    return make


def least_precedence(precedence: int) -> ElementFactory:
    def make(rule: str) -> Element:
        start, end = ATNState(StateKind.BASIC, rule), ATNState(StateKind.BASIC, rule)
        start.edges.append(Edge(end, precedence=precedence))
        return Element(start, end, lambda _: None)

    return make


def sequence(*factories: ElementFactory) -> ElementFactory:
    def make(rule: str) -> Element:
        elements = [make_element(rule) for make_element in factories]
        for previous, following in itertools.pairwise(elements):
            previous.end.edges.append(Edge(following.start))

        def run(parser: RuleParser) -> None:
            for element in elements:
                element.run(parser)

        return Element(elements[0].start, elements[-1].end, run)

    return make


def _first_tokens(element: Element) -> frozenset[str]:
    return next_tokens(element.start) - {EPSILON}


def optional(make_element: ElementFactory) -> ElementFactory:
    """Return an optional element; the next token decides."""

    def make(rule: str) -> Element:
        inner = make_element(rule)
        start, end = ATNState(StateKind.BLOCK_START, rule), ATNState(StateKind.BASIC, rule)
        start.edges += [Edge(inner.start), Edge(end)]
        inner.end.edges.append(Edge(end))

        def run(parser: RuleParser) -> None:
            parser.sync(start)
            if parser.next_is(_first_tokens(inner)):
                inner.run(parser)

        return Element(start, end, run)

    return make


def choice(*factories: ElementFactory) -> ElementFactory:
    """Return a choice of elements; a prediction by as many tokens as necessary decides."""

    def make(rule: str) -> Element:
        inner = [make_element(rule) for make_element in factories]
        start, end = ATNState(StateKind.BLOCK_START, rule), ATNState(StateKind.BASIC, rule)
        for element in inner:
            start.edges.append(Edge(element.start))
            element.end.edges.append(Edge(end))

        def run(parser: RuleParser) -> None:
            parser.sync(start)
            inner[parser.predict(start) - 1].run(parser)

        return Element(start, end, run)

    return make


def star(make_element: ElementFactory, *, predicted: bool) -> ElementFactory:
    """Return an element that is repeated any number of times; the next token or a prediction decides."""

    def make(rule: str) -> Element:
        inner = make_element(rule)
        entry, back = ATNState(StateKind.STAR_ENTRY, rule), ATNState(StateKind.STAR_BACK, rule)
        end = ATNState(StateKind.BASIC, rule)
        entry.edges += [Edge(inner.start), Edge(end)]
        inner.end.edges.append(Edge(back))
        back.edges.append(Edge(entry))

        def has_next_item(parser: RuleParser) -> bool:
            return parser.predict(entry) == 1 if predicted else parser.next_is(_first_tokens(inner))

        def run(parser: RuleParser) -> None:
            parser.sync(entry)
            while has_next_item(parser):
                inner.run(parser)
                parser.sync(back)

        return Element(entry, end, run)

    return make


def plus(make_element: ElementFactory, *, predicted: bool) -> ElementFactory:
    def make(rule: str) -> Element:
        inner = make_element(rule)
        start, back = ATNState(StateKind.BLOCK_START, rule), ATNState(StateKind.PLUS_BACK, rule)
        end = ATNState(StateKind.BASIC, rule)
        start.edges.append(Edge(inner.start))
        inner.end.edges.append(Edge(back))
        back.edges += [Edge(start), Edge(end)]

        def run(parser: RuleParser) -> None:
            parser.sync(start)
            while True:
                inner.run(parser)
                parser.sync(back)
                has_next_item = (
                    parser.predict(back) == 1 if predicted else parser.next_is(_first_tokens(inner))
                )
                if not has_next_item:
                    return

        return Element(start, end, run)

    return make


def _comma_separated(make_element: ElementFactory, *, predicted: bool) -> ElementFactory:
    return sequence(make_element, star(sequence(token(","), make_element), predicted=predicted))


_FIELD = sequence(rule_call("optField"), token(":"), rule_call("expr"))
_ENTRY = sequence(rule_call("optExpr"), token(":"), rule_call("expr"))
_NAME = sequence(optional(token(".")), token("IDENTIFIER"))
_RULES: Final[dict[str, ElementFactory]] = {
    "start": sequence(rule_call("expr"), token(EOF)),
    "expr": sequence(
        rule_call("conditionalOr"),
        optional(sequence(token("?"), rule_call("conditionalOr"), token(":"), rule_call("expr"))),
    ),
    "conditionalOr": sequence(
        rule_call("conditionalAnd"), star(sequence(token("||"), rule_call("conditionalAnd")), predicted=False)
    ),
    "conditionalAnd": sequence(
        rule_call("relation"), star(sequence(token("&&"), rule_call("relation")), predicted=False)
    ),
    "relation": sequence(
        rule_call("calc"),
        star(
            sequence(
                least_precedence(1),
                token("<", "<=", ">=", ">", "==", "!=", "in"),
                rule_call("relation", 2),
            ),
            predicted=True,
        ),
    ),
    "calc": sequence(
        rule_call("unary"),
        star(
            choice(
                sequence(least_precedence(2), token("*", "/", "%"), rule_call("calc", 3)),
                sequence(least_precedence(1), token("+", "-"), rule_call("calc", 2)),
            ),
            predicted=True,
        ),
    ),
    "unary": choice(
        rule_call("member"),
        sequence(plus(token("!"), predicted=False), rule_call("member")),
        sequence(plus(token("-"), predicted=True), rule_call("member")),
    ),
    "member": sequence(
        rule_call("primary"),
        star(
            choice(
                sequence(least_precedence(3), token("."), optional(token("?")), rule_call("escapeIdent")),
                sequence(
                    least_precedence(2),
                    *(
                        token("."),
                        token("IDENTIFIER"),
                        token("("),
                        optional(rule_call("exprList")),
                        token(")"),
                    ),
                ),
                sequence(
                    least_precedence(1), token("["), optional(token("?")), rule_call("expr"), token("]")
                ),
            ),
            predicted=True,
        ),
    ),
    "primary": choice(
        _NAME,
        sequence(_NAME, token("("), optional(rule_call("exprList")), token(")")),
        sequence(token("("), rule_call("expr"), token(")")),
        sequence(token("["), optional(rule_call("listInit")), optional(token(",")), token("]")),
        sequence(token("{"), optional(rule_call("mapInitializerList")), optional(token(",")), token("}")),
        sequence(
            _NAME,
            star(sequence(token("."), token("IDENTIFIER")), predicted=False),
            *(token("{"), optional(rule_call("fieldInitializerList")), optional(token(",")), token("}")),
        ),
        rule_call("literal"),
    ),
    "exprList": _comma_separated(rule_call("expr"), predicted=False),
    "listInit": _comma_separated(rule_call("optExpr"), predicted=True),
    "fieldInitializerList": _comma_separated(_FIELD, predicted=True),
    "optField": sequence(optional(token("?")), rule_call("escapeIdent")),
    "mapInitializerList": _comma_separated(_ENTRY, predicted=True),
    "escapeIdent": choice(token("IDENTIFIER"), token("ESC_IDENTIFIER")),
    "optExpr": sequence(optional(token("?")), rule_call("expr")),
    "literal": choice(
        sequence(optional(token("-")), token("NUM_INT")),
        token("NUM_UINT"),
        sequence(optional(token("-")), token("NUM_FLOAT")),
        *(token(kind) for kind in ("STRING", "BYTES", "true", "false", "null")),
    ),
}
RECURSIVE: Final = frozenset(("relation", "calc", "member"))
"""Left-recursive rules, whose loops depend on the precedence."""


class Network(NamedTuple):
    """The states of all rules, by the rules' names."""

    rules: dict[str, Element]
    stop_states: dict[str, ATNState]
    follow_states: dict[str, list[ATNState]]
    """The states after each call of a rule."""


@cache
def network() -> Network:
    """Return the states of all rules. They are created when the first syntax error is analyzed."""
    rules = {name: make(name) for name, make in _RULES.items()}
    stop_states = {name: ATNState(StateKind.RULE_STOP, name) for name in rules}
    follow_states: dict[str, list[ATNState]] = {name: [] for name in rules}
    for name, element in rules.items():
        element.end.edges.append(Edge(stop_states[name]))
    for element in rules.values():
        for state in _states(element.start):
            for edge in state.edges:
                if edge.rule:
                    follow_states[edge.rule].append(edge.target)
    return Network(rules, stop_states, follow_states)


def _states(start: ATNState) -> Iterable[ATNState]:
    visited = {start}
    stack = [start]
    while stack:
        state = stack.pop()
        yield state
        for edge in state.edges:
            if edge.target not in visited:
                visited.add(edge.target)
                stack.append(edge.target)


@cache
def next_tokens(state: ATNState) -> frozenset[str]:
    """Return the tokens that can follow a state in its rule; EPSILON is one of them if the rule can end."""
    tokens: set[str] = set()
    _collect_next_tokens(state, (), tokens, set())
    return frozenset(tokens)


def _collect_next_tokens(
    state: ATNState, stack: Sequence[ATNState], tokens: set[str], visited: set[tuple[ATNState, int]]
) -> None:
    key = (state, hash(tuple(stack)))
    if key in visited:
        return
    visited.add(key)
    if state.kind is StateKind.RULE_STOP:
        if stack:
            _collect_next_tokens(stack[-1], stack[:-1], tokens, visited)
        else:
            tokens.add(EPSILON)
        return
    for edge in state.edges:
        if edge.tokens:
            tokens |= edge.tokens
        elif edge.rule:
            if edge.target not in stack:
                _collect_next_tokens(network().rules[edge.rule].start, (*stack, edge.target), tokens, visited)
        else:
            _collect_next_tokens(edge.target, stack, tokens, visited)


def format_tokens(tokens: Iterable[str]) -> str:
    """Return a set of tokens as error messages list it."""
    names = [_token_name(kind) for kind in sorted(tokens, key=TOKENS.index)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _token_name(kind: str) -> str:
    return kind if kind == EOF or kind.isupper() else f"'{kind}'"

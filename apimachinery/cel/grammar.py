"""The grammar of CEL as a network of states, from which errors list what could have followed.

It is used for what does not parse; what does is read by `parser.py`.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery.cel.lexer import EOF

EPSILON: Final = ""
TOKENS: Final = (
    *(EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-"),
    *("!", "?", ":", "+", "*", "/", "%", "true", "false", "null"),
    *("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"),
)
"""In the order in which messages list them."""


class StateKind(Enum):
    BASIC = auto()
    BLOCK_START = auto()
    STAR_ENTRY = auto()
    STAR_BACK = auto()
    PLUS_BACK = auto()
    RULE_STOP = auto()


class Edge(NamedTuple):
    """A way to another state: for nothing, by one of some tokens, by a rule, or if a precedence is high enough."""

    target: "State"
    tokens: frozenset[str] = frozenset()
    rule: str = ""
    precedence: int = -1
    """Of a rule that is called, or of the requested one."""


class State(Struct, eq=False):
    kind: StateKind
    rule: str
    edges: list[Edge] = field(default_factory=list)


Run = Callable[["Parse"], None]
"""What reads an element."""


class Element(NamedTuple):
    """A part of a rule between two states, and what reads it."""

    start: State
    end: State
    run: Run


class Parse:
    """What elements need of the parser that runs them; `recovery.py` has it."""

    def match(self, state: State, tokens: frozenset[str]) -> None:
        raise NotImplementedError

    def call(self, state: State, rule: str, precedence: int) -> None:
        raise NotImplementedError

    def sync(self, state: State) -> None:
        raise NotImplementedError

    def predict(self, state: State) -> int:
        raise NotImplementedError

    def next_is(self, tokens: frozenset[str]) -> bool:
        raise NotImplementedError


Make = Callable[[str], Element]
"""What makes an element of a rule of this name."""


def token(*tokens: str) -> Make:
    def make(rule: str) -> Element:
        start, end = State(StateKind.BASIC, rule), State(StateKind.BASIC, rule)
        kinds = frozenset(tokens)
        start.edges.append(Edge(end, kinds))
        return Element(start, end, lambda parse: parse.match(start, kinds))

    return make


def rule_call(name: str, precedence: int = 0) -> Make:
    def make(rule: str) -> Element:
        start, end = State(StateKind.BASIC, rule), State(StateKind.BASIC, rule)
        start.edges.append(Edge(end, rule=name, precedence=precedence))
        return Element(start, end, lambda parse: parse.call(start, name, precedence))

    return make


def least_precedence(precedence: int) -> Make:
    def make(rule: str) -> Element:
        start, end = State(StateKind.BASIC, rule), State(StateKind.BASIC, rule)
        start.edges.append(Edge(end, precedence=precedence))
        return Element(start, end, lambda _: None)

    return make


def sequence(*makes: Make) -> Make:
    def make(rule: str) -> Element:
        elements = [make_one(rule) for make_one in makes]
        for before, after in itertools.pairwise(elements):
            before.end.edges.append(Edge(after.start))

        def run(parse: Parse) -> None:
            for element in elements:
                element.run(parse)

        return Element(elements[0].start, elements[-1].end, run)

    return make


def _first_tokens(element: Element) -> frozenset[str]:
    return next_tokens(element.start) - {EPSILON}


def optional(make_one: Make) -> Make:
    """An element that may be absent; one token decides."""

    def make(rule: str) -> Element:
        inner = make_one(rule)
        start, end = State(StateKind.BLOCK_START, rule), State(StateKind.BASIC, rule)
        start.edges += [Edge(inner.start), Edge(end)]
        inner.end.edges.append(Edge(end))

        def run(parse: Parse) -> None:
            parse.sync(start)
            if parse.next_is(_first_tokens(inner)):
                inner.run(parse)

        return Element(start, end, run)

    return make


def choice(*makes: Make) -> Make:
    """One of several elements, which is predicted by as many tokens as it takes."""

    def make(rule: str) -> Element:
        inner = [make_one(rule) for make_one in makes]
        start, end = State(StateKind.BLOCK_START, rule), State(StateKind.BASIC, rule)
        for element in inner:
            start.edges.append(Edge(element.start))
            element.end.edges.append(Edge(end))

        def run(parse: Parse) -> None:
            parse.sync(start)
            inner[parse.predict(start) - 1].run(parse)

        return Element(start, end, run)

    return make


def star(make_one: Make, *, predicted: bool) -> Make:
    """An element any number of times; one token decides, or it is predicted."""

    def make(rule: str) -> Element:
        inner = make_one(rule)
        entry, back = State(StateKind.STAR_ENTRY, rule), State(StateKind.STAR_BACK, rule)
        end = State(StateKind.BASIC, rule)
        entry.edges += [Edge(inner.start), Edge(end)]
        inner.end.edges.append(Edge(back))
        back.edges.append(Edge(entry))

        def has_next_item(parse: Parse) -> bool:
            return parse.predict(entry) == 1 if predicted else parse.next_is(_first_tokens(inner))

        def run(parse: Parse) -> None:
            parse.sync(entry)
            while has_next_item(parse):
                inner.run(parse)
                parse.sync(back)

        return Element(entry, end, run)

    return make


def plus(make_one: Make, *, predicted: bool) -> Make:
    def make(rule: str) -> Element:
        inner = make_one(rule)
        start, back = State(StateKind.BLOCK_START, rule), State(StateKind.PLUS_BACK, rule)
        end = State(StateKind.BASIC, rule)
        start.edges.append(Edge(inner.start))
        inner.end.edges.append(Edge(back))
        back.edges += [Edge(start), Edge(end)]

        def run(parse: Parse) -> None:
            parse.sync(start)
            while True:
                inner.run(parse)
                parse.sync(back)
                again = parse.predict(back) == 1 if predicted else parse.next_is(_first_tokens(inner))
                if not again:
                    return

        return Element(start, end, run)

    return make


def _many(make_one: Make, *, predicted: bool) -> Make:
    return sequence(make_one, star(sequence(token(","), make_one), predicted=predicted))


_FIELD = sequence(rule_call("optField"), token(":"), rule_call("expr"))
_ENTRY = sequence(rule_call("optExpr"), token(":"), rule_call("expr"))
_NAME = sequence(optional(token(".")), token("IDENTIFIER"))
_RULES: Final[dict[str, Make]] = {
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
    "exprList": _many(rule_call("expr"), predicted=False),
    "listInit": _many(rule_call("optExpr"), predicted=True),
    "fieldInitializerList": _many(_FIELD, predicted=True),
    "optField": sequence(optional(token("?")), rule_call("escapeIdent")),
    "mapInitializerList": _many(_ENTRY, predicted=True),
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
"""Rules whose loop is decided by precedence."""


class Network(NamedTuple):
    rules: dict[str, Element]
    stops: dict[str, State]
    followers: dict[str, list[State]]
    """Where each rule is returned from to."""


@cache
def network() -> Network:
    """Return the states of all rules; they are made when the first error is looked into."""
    rules = {name: make(name) for name, make in _RULES.items()}
    stops = {name: State(StateKind.RULE_STOP, name) for name in rules}
    followers: dict[str, list[State]] = {name: [] for name in rules}
    for name, element in rules.items():
        element.end.edges.append(Edge(stops[name]))
    for element in rules.values():
        for state in _states(element.start):
            for edge in state.edges:
                if edge.rule:
                    followers[edge.rule].append(edge.target)
    return Network(rules, stops, followers)


def _states(start: State) -> Iterable[State]:
    seen = {start}
    stack = [start]
    while stack:
        state = stack.pop()
        yield state
        for edge in state.edges:
            if edge.target not in seen:
                seen.add(edge.target)
                stack.append(edge.target)


@cache
def next_tokens(state: State) -> frozenset[str]:
    """Return which tokens can follow within the rule; the empty one if its end can be reached without any."""
    tokens: set[str] = set()
    _look(state, (), tokens, set())
    return frozenset(tokens)


def _look(state: State, stack: Sequence[State], tokens: set[str], seen: set[tuple[State, int]]) -> None:
    key = (state, hash(tuple(stack)))
    if key in seen:
        return
    seen.add(key)
    if state.kind is StateKind.RULE_STOP:
        if stack:
            _look(stack[-1], stack[:-1], tokens, seen)
        else:
            tokens.add(EPSILON)
        return
    for edge in state.edges:
        if edge.tokens:
            tokens |= edge.tokens
        elif edge.rule:
            if edge.target not in stack:
                _look(network().rules[edge.rule].start, (*stack, edge.target), tokens, seen)
        else:
            _look(edge.target, stack, tokens, seen)


def format_tokens(tokens: Iterable[str]) -> str:
    """Return a set of tokens as messages show it."""
    names = [_token_name(kind) for kind in sorted(tokens, key=TOKENS.index)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _token_name(kind: str) -> str:
    return kind if kind == EOF or kind.isupper() else f"'{kind}'"

"""Which of several ways a parser takes, by as many tokens as it needs: the adaptive prediction of ANTLR.

Beyond the end of the rule that decides, every caller is followed, whether or not it is the actual one.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mockube.apimachinery.cel.grammar import RECURSIVE, State, StateKind, network
from mockube.apimachinery.cel.lexer import EOF, Token

Stack = tuple[State, ...]


class Config(NamedTuple):
    """A state that a way leads to, and where it returns to from the rules that it has called."""

    state: State
    way: int
    stack: Stack
    outside: bool = False
    """Whether it has left the rule that decides."""


class NoViableAlternative(Exception):
    """No way goes on at a token."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position


class _Step:
    """How far some tokens have led: to one way, or to configurations that differ still."""

    __slots__ = ("configs", "way")

    def __init__(self, configs: set[Config]) -> None:
        self.configs = frozenset(configs)
        ways = {config.way for config in configs}
        self.way = min(ways) if len(ways) == 1 or _is_ambiguous(configs) else 0


@lru_cache(maxsize=4096)
def _first_step(state: State, precedence: int) -> _Step:
    return _Step(_start(state, precedence))


@lru_cache(maxsize=1024)
def _next_step(configs: frozenset[Config], kind: str) -> _Step | None:
    reached = _step(configs, kind)
    return _Step(reached) if reached else None


def predict(state: State, tokens: Sequence[Token], position: int, precedence: int) -> int:
    """Return the number of the way, or raise NoWay with the token that none can take."""
    step = _first_step(state, precedence)
    while not step.way:
        kind = tokens[position].kind
        following = _next_step(step.configs, kind)
        if following is None:
            finished = [config.way for config in step.configs if config.outside or _is_end(config)]
            if finished:
                return min(finished)
            raise NoViableAlternative(position)
        if kind == EOF:
            return min(config.way for config in following.configs)
        step = following
        position += 1
    return step.way


def _is_end(config: Config) -> bool:
    return config.state.kind is StateKind.RULE_STOP and not config.stack


def _start(state: State, precedence: int) -> set[Config]:
    configs: set[Config] = set()
    filtered = state.kind is StateKind.STAR_ENTRY and state.rule in RECURSIVE
    for way, edge in enumerate(state.edges, 1):
        least = precedence if filtered and way == 1 else None
        _close(Config(edge.target, way, ()), configs, least)
    return configs


def _close(config: Config, configs: set[Config], least: int | None = None) -> None:
    """Add what a config leads to without a token. A precedence that is not high enough leads nowhere."""
    stack = [config]
    while stack:
        config = stack.pop()
        if config in configs:
            continue
        configs.add(config)
        state, way, calls, outside = config
        if state.kind is StateKind.RULE_STOP:
            stack += _after_return(config)
            continue
        for edge in state.edges:
            if edge.tokens:
                continue
            if edge.rule:
                start = network().rules[edge.rule].start
                stack.append(Config(start, way, (*calls, edge.target), outside))
            elif least is None or edge.precedence < 0 or edge.precedence >= least:
                stack.append(Config(edge.target, way, calls, outside))


def _after_return(config: Config) -> list[Config]:
    state, way, stack, outside = config
    if stack:
        return [Config(stack[-1], way, stack[:-1], outside)]
    return [Config(follower, way, (), outside=True) for follower in network().followers[state.rule]]


def _step(configs: frozenset[Config], kind: str) -> set[Config]:
    reached: set[Config] = set()
    for config in configs:
        for edge in config.state.edges:
            if kind in edge.tokens:
                _close(Config(edge.target, *config[1:]), reached)
    return reached


def _is_ambiguous(configs: set[Config]) -> bool:
    """Whether all ways lead to the same states, so that no further token distinguishes them."""
    ways: dict[tuple[State, Stack], set[int]] = {}
    for state, way, stack, _ in configs:
        ways.setdefault((state, stack), set()).add(way)
    groups = {frozenset(group) for group in ways.values()}
    return len(groups) == 1 and len(next(iter(groups))) > 1

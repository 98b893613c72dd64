"""Which of several ways a parser takes, by as many tokens as it needs: the adaptive prediction of ANTLR.

Beyond the end of the rule that decides, every caller is followed, whether or not it is the actual one. As in ANTLR, the
stacks of a state are one graph: in nested lists of negative numbers their number is exponential in the depth.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from mockube.apimachinery.cel.grammar import RECURSIVE, State, StateKind, network
from mockube.apimachinery.cel.lexer import EOF, Token

MAX_LOOKAHEAD: Final = 256
"""How many tokens a prediction reads. Then it takes the first way, as ANTLR does if a text is ambiguous to its end."""


class Stacks:
    """A set of stacks of states to which called rules return. Equal sets are the same object."""

    __slots__ = ("__weakref__", "has_empty", "returns")

    def __init__(self, returns: Mapping[State, "Stacks"], *, has_empty: bool) -> None:
        self.returns = returns
        """The state on the top of some stacks, with what is below it."""
        self.has_empty = has_empty
        """Whether the empty stack is one of them."""


_stacks: Final[WeakValueDictionary[object, Stacks]] = WeakValueDictionary()
_lock: Final = threading.Lock()


def _intern(returns: Mapping[State, Stacks], *, has_empty: bool = False) -> Stacks:
    key = frozenset((state, id(below)) for state, below in returns.items()), has_empty
    with _lock:
        stacks = _stacks.get(key)
        if stacks is None:
            stacks = _stacks[key] = Stacks(returns, has_empty=has_empty)
    return stacks


_EMPTY: Final = Stacks({}, has_empty=True)
_stacks[frozenset(), True] = _EMPTY


def _union(stacks: Stacks, others: Stacks) -> Stacks:
    if stacks is others:
        return stacks
    returns = dict(stacks.returns)
    for state, below in others.returns.items():
        returns[state] = _union(returns[state], below) if state in returns else below
    return _intern(returns, has_empty=stacks.has_empty or others.has_empty)


class Config(NamedTuple):
    """A state that a way leads to, and where it returns to from the rules that it has called."""

    state: State
    way: int
    stacks: Stacks
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
        self.configs = _merge(configs)
        ways = {config.way for config in configs}
        self.way = min(ways) if len(ways) == 1 or _is_ambiguous(self.configs) else 0


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
    end = position + MAX_LOOKAHEAD
    while not step.way:
        if position == end:
            return min(config.way for config in step.configs)
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
    return config.state.kind is StateKind.RULE_STOP and config.stacks.has_empty


def _start(state: State, precedence: int) -> set[Config]:
    configs: set[Config] = set()
    filtered = state.kind is StateKind.STAR_ENTRY and state.rule in RECURSIVE
    for way, edge in enumerate(state.edges, 1):
        minimum = precedence if filtered and way == 1 else None
        _close(Config(edge.target, way, _EMPTY), configs, minimum)
    return configs


def _close(config: Config, configs: set[Config], minimum: int | None = None) -> None:
    """Add what a config leads to without a token. A precedence that is not high enough leads nowhere."""
    stack = [config]
    while stack:
        config = stack.pop()
        if config in configs:
            continue
        configs.add(config)
        state, way, stacks, outside = config
        if state.kind is StateKind.RULE_STOP:
            stack += _after_return(config)
            continue
        for edge in state.edges:
            if edge.tokens:
                continue
            if edge.rule:
                start = network().rules[edge.rule].start
                stack.append(Config(start, way, _intern({edge.target: stacks}), outside))
            elif minimum is None or edge.precedence < 0 or edge.precedence >= minimum:
                stack.append(Config(edge.target, way, stacks, outside))


def _after_return(config: Config) -> list[Config]:
    state, way, stacks, outside = config
    after = [Config(caller, way, below, outside) for caller, below in stacks.returns.items()]
    if stacks.has_empty:
        after += [Config(follower, way, _EMPTY, outside=True) for follower in network().followers[state.rule]]
    return after


def _step(configs: frozenset[Config], kind: str) -> set[Config]:
    reached: set[Config] = set()
    for config in configs:
        for edge in config.state.edges:
            if kind in edge.tokens:
                _close(Config(edge.target, *config[1:]), reached)
    return reached


def _merge(configs: Iterable[Config]) -> frozenset[Config]:
    """Return configs that differ in their stacks only as one."""
    merged: dict[tuple[State, int, bool], Stacks] = {}
    for state, way, stacks, outside in configs:
        key = state, way, outside
        merged[key] = _union(merged[key], stacks) if key in merged else stacks
    return frozenset(Config(state, way, stacks, outside) for (state, way, outside), stacks in merged.items())


def _is_ambiguous(configs: Iterable[Config]) -> bool:
    """Whether all ways lead to the same states, so that no further token distinguishes them."""
    by_state: dict[State, dict[int, Stacks]] = {}
    for state, way, stacks, _ in configs:
        ways = by_state.setdefault(state, {})
        ways[way] = _union(ways[way], stacks) if way in ways else stacks
    groups = {frozenset(ways) for ways in by_state.values()}
    return (
        len(groups) == 1
        and len(next(iter(groups))) > 1
        and all(len({*map(id, ways.values())}) == 1 for ways in by_state.values())
    )

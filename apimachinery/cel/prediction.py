"""The adaptive prediction of ANTLR: the choice of an alternative by as many tokens as necessary.

Beyond the end of the deciding rule, all callers of the rule are followed, not only the actual one. As in ANTLR, the stacks
of a state are one graph, because in nested lists of negative numbers their number is exponential in the depth.
"""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from .grammar import RECURSIVE, ATNState, StateKind, network
from .lexer import EOF, Token

MAX_LOOKAHEAD: Final = 256
"""The number of tokens after which a prediction chooses the first alternative, as ANTLR does for an ambiguous text."""


class Stacks:
    """A set of stacks of return states. Equal sets are the same object."""

    __slots__ = ("__weakref__", "has_empty", "returns")

    def __init__(self, returns: Mapping[ATNState, "Stacks"], *, has_empty: bool) -> None:
        self.returns = returns
        """The stacks below each state that is on top of a stack."""
        self.has_empty = has_empty
        """Whether the set contains the empty stack."""


_stacks: Final[WeakValueDictionary[object, Stacks]] = WeakValueDictionary()
_lock: Final = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A thread that holds it would never release it in a forked process.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def _intern(returns: Mapping[ATNState, Stacks], *, has_empty: bool = False) -> Stacks:
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


class ATNConfig(NamedTuple):
    """A state that an alternative reaches, with the stacks of states to which its called rules return."""

    state: ATNState
    alt: int
    stacks: Stacks
    in_outer_context: bool = False
    """Whether the alternative has left the deciding rule; ANTLR's `reachesIntoOuterContext`."""


class NoViableAlternative(Exception):
    """No alternative accepts a token."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position


class _DfaState:
    """The configurations after some tokens, and the predicted alternative, or 0 if more tokens are necessary."""

    __slots__ = ("alt", "configs")

    def __init__(self, configs: set[ATNConfig]) -> None:
        self.configs = _merge(configs)
        alts = {config.alt for config in configs}
        self.alt = min(alts) if len(alts) == 1 or _is_ambiguous(self.configs) else 0


@lru_cache(maxsize=4096)
def _start_state(state: ATNState, precedence: int) -> _DfaState:
    return _DfaState(_start_configs(state, precedence))


@lru_cache(maxsize=1024)
def _next_state(configs: frozenset[ATNConfig], kind: str) -> _DfaState | None:
    successors = _move(configs, kind)
    return _DfaState(successors) if successors else None


def predict(state: ATNState, tokens: Sequence[Token], position: int, precedence: int) -> int:
    """Return the number of the alternative, from 1; raise NoViableAlternative with the position of the unexpected token."""
    dfa_state = _start_state(state, precedence)
    end = position + MAX_LOOKAHEAD
    while not dfa_state.alt:
        if position == end:
            return min(config.alt for config in dfa_state.configs)
        kind = tokens[position].kind
        next_state = _next_state(dfa_state.configs, kind)
        if next_state is None:
            finished_alts = [
                config.alt for config in dfa_state.configs if config.in_outer_context or _is_end(config)
            ]
            if finished_alts:
                return min(finished_alts)
            raise NoViableAlternative(position)
        if kind == EOF:
            return min(config.alt for config in next_state.configs)
        dfa_state = next_state
        position += 1
    return dfa_state.alt


def _is_end(config: ATNConfig) -> bool:
    return config.state.kind is StateKind.RULE_STOP and config.stacks.has_empty


def _start_configs(state: ATNState, precedence: int) -> set[ATNConfig]:
    configs: set[ATNConfig] = set()
    is_precedence_filtered = state.kind is StateKind.STAR_ENTRY and state.rule in RECURSIVE
    for alt, edge in enumerate(state.edges, 1):
        minimum = precedence if is_precedence_filtered and alt == 1 else None
        _add_closure(ATNConfig(edge.target, alt, _EMPTY), configs, minimum)
    return configs


def _add_closure(config: ATNConfig, configs: set[ATNConfig], minimum: int | None = None) -> None:
    """Add the configurations that are reachable without a token; edges below the minimum precedence are not followed."""
    stack = [config]
    while stack:
        config = stack.pop()
        if config in configs:
            continue
        configs.add(config)
        state, alt, stacks, in_outer_context = config
        if state.kind is StateKind.RULE_STOP:
            stack += _after_return(config)
            continue
        for edge in state.edges:
            if edge.tokens:
                continue
            if edge.rule:
                start = network().rules[edge.rule].start
                stack.append(ATNConfig(start, alt, _intern({edge.target: stacks}), in_outer_context))
            elif minimum is None or edge.precedence < 0 or edge.precedence >= minimum:
                stack.append(ATNConfig(edge.target, alt, stacks, in_outer_context))


def _after_return(config: ATNConfig) -> list[ATNConfig]:
    state, alt, stacks, in_outer_context = config
    configs = [ATNConfig(caller, alt, below, in_outer_context) for caller, below in stacks.returns.items()]
    if stacks.has_empty:
        configs += [
            ATNConfig(follower, alt, _EMPTY, in_outer_context=True)
            for follower in network().follow_states[state.rule]
        ]
    return configs


def _move(configs: frozenset[ATNConfig], kind: str) -> set[ATNConfig]:
    successors: set[ATNConfig] = set()
    for config in configs:
        for edge in config.state.edges:
            if kind in edge.tokens:
                _add_closure(ATNConfig(edge.target, *config[1:]), successors)
    return successors


def _merge(configs: Iterable[ATNConfig]) -> frozenset[ATNConfig]:
    """Merge the stacks of configurations that are otherwise equal."""
    merged: dict[tuple[ATNState, int, bool], Stacks] = {}
    for state, alt, stacks, in_outer_context in configs:
        key = state, alt, in_outer_context
        merged[key] = _union(merged[key], stacks) if key in merged else stacks
    return frozenset(
        ATNConfig(state, alt, stacks, in_outer_context)
        for (state, alt, in_outer_context), stacks in merged.items()
    )


def _is_ambiguous(configs: Iterable[ATNConfig]) -> bool:
    """Return whether all alternatives reach the same states, so that no further token distinguishes them."""
    by_state: dict[ATNState, dict[int, Stacks]] = {}
    for state, alt, stacks, _ in configs:
        alts = by_state.setdefault(state, {})
        alts[alt] = _union(alts[alt], stacks) if alt in alts else stacks
    groups = {frozenset(alts) for alts in by_state.values()}
    return (
        len(groups) == 1
        and len(next(iter(groups))) > 1
        and all(len({*map(id, alts.values())}) == 1 for alts in by_state.values())
    )

"""Texts that make a slow regular expression slow, built from the parts that the expression repeats.

Each is a function from a size to a text. A repeatable part is repeated after the shortest prefix that leads to
it, and followed by a suffix that does not match, so that all alternatives are tried.
"""

import math
import re
from collections.abc import Callable, Iterator
from re import _constants as op
from re import _parser
from typing import Any, NamedTuple

_POOL = "a0 .-\n\t_:/\"'\\A[](){}=,~!z9\0é%+@$"
_ENDS = ("", "\0", "\n", "!", " ", "a")
_MANY = 12
"""A part that may be repeated less often than this is not pumped."""


_FEW = 64
"""Sizes up to here are numbers of repeats, larger ones numbers of characters."""


class Pump(NamedTuple):
    before: str
    repeated: str
    after: str


def texts(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Functions that make growing texts, each about so many characters long."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    alphabet = _distinct_characters(tree)
    seen: set[tuple[str, str, str]] = set()
    for pump in [*_pumps(list(tree), alphabet), *_plain(alphabet)]:
        ends = dict.fromkeys((pump.after, *(pump.after + end for end in _ENDS), *_ENDS))
        candidates = [Pump(pump.before, pump.repeated, end) for end in ends]
        candidates.append(Pump("", pump.before + pump.repeated, "\0"))
        candidates.append(Pump("", pump.before, "\0"))
        candidates.append(Pump("", pump.before + pump.repeated + pump.after, "\0"))
        candidates.append(Pump(pump.before, pump.repeated + pump.after, "\0"))
        for candidate in candidates:
            if candidate.repeated and candidate not in seen:
                seen.add(candidate)
                yield _maker(candidate, is_bytes=isinstance(pattern.pattern, bytes))


def has_few_paths(pattern: re.Pattern[Any], maximum: int = 10_000) -> bool:
    """Whether a match from one position tries at most this many paths, whatever the text: then it is linear."""
    return _paths(_parser.parse(pattern.pattern, pattern.flags)) <= maximum


def _paths(nodes: Any) -> float:
    """Return the number of paths through a part and its lookaheads; infinite if a part has an unbounded repeat."""
    return math.prod(_own_paths(code, argument) for code, argument in nodes)


def _own_paths(code: Any, argument: Any) -> float:
    inner = [_paths(part) for part in _inner(code, argument)]
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        minimum, greatest, _ = argument
        if greatest >= op.MAXREPEAT:
            return math.inf
        if inner[0] == 1:
            return float(greatest - minimum + 1)
        return sum(inner[0] ** min(times, 64) for times in range(minimum, min(greatest, 64) + 1))
    return sum(inner) or 1


def _maker(pump: Pump, *, is_bytes: bool) -> Callable[[int], Any]:
    def make(size: int) -> Any:
        # An exponential cost is exponential in the number of repeats of a part.
        times = size if size <= _FEW else max(_FEW, size // len(pump.repeated))
        text = pump.before + pump.repeated * times + pump.after
        return text.encode("latin-1", "replace") if is_bytes else text

    make.__qualname__ = repr(tuple(pump))
    return make


def _plain(alphabet: str) -> Iterator[Pump]:
    """Yield texts that do not depend on the expression: runs of a character, and of one behind another."""
    letters = alphabet[:7]
    for first in letters:
        yield Pump("", first, "")
        for second in letters:
            if first != second:
                yield Pump("", first + second, "")


# --- characters


def _distinct_characters(tree: Any) -> str:
    """Return one character of each class that the expression distinguishes, its own first."""
    found: dict[str, None] = {}
    for items in _sets(list(tree)):
        for item in items:
            code, argument = item
            if code is op.LITERAL and argument < 256:
                found[chr(argument)] = None
            elif code is op.RANGE:
                found[chr(argument[0])] = None
    for character in _POOL:
        found[character] = None
    return "".join(found)


def _sets(nodes: list[Any]) -> Iterator[list[Any]]:
    for code, argument in nodes:
        if code is op.IN:
            yield argument
        elif code in (op.LITERAL, op.NOT_LITERAL):
            yield [(op.LITERAL, argument)]
        else:
            for inner in _inner(code, argument):
                yield from _sets(inner)


def _inner(code: Any, argument: Any) -> list[list[Any]]:
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [list(argument[2])]
    if code is op.SUBPATTERN:
        return [list(argument[3])]
    if code is op.ATOMIC_GROUP:
        return [list(argument)]
    if code is op.BRANCH:
        return [list(branch) for branch in argument[1]]
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [list(argument[1])]
    if code is op.GROUPREF_EXISTS:
        return [list(branch) for branch in argument[1:] if branch is not None]
    return []


_CATEGORIES = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_NOT_DIGIT: lambda character: not character.isdigit(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    op.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
    op.CATEGORY_NOT_WORD: lambda character: not (character.isalnum() or character == "_"),
}


def _accepts(items: list[Any], character: str) -> bool:
    negated, found, point = False, False, ord(character)
    for code, argument in items:
        if code is op.NEGATE:
            negated = True
        elif code is op.LITERAL:
            found = found or argument == point
        elif code is op.RANGE:
            found = found or argument[0] <= point <= argument[1]
        elif code is op.CATEGORY:
            found = found or _CATEGORIES[argument](character)
    return found is not negated


def _characters(code: Any, argument: Any, alphabet: str) -> list[str]:
    if code is op.LITERAL:
        return [chr(argument)]
    if code is op.NOT_LITERAL:
        return [character for character in alphabet if ord(character) != argument]
    if code is op.ANY:
        return list(alphabet)
    return [character for character in alphabet if _accepts(argument, character)]


# --- samples: short texts that a part accepts


def _samples(nodes: list[Any], alphabet: str, groups: dict[int, str], maximum: int = 4) -> list[str]:
    """Return some samples, the shortest first."""
    found = [""]
    for code, argument in nodes:
        parts = _part_samples(code, argument, alphabet, groups, maximum)
        found = _joined_pairs(found, parts)[:maximum]
    return found


def _joined_pairs(left: list[str], right: list[str]) -> list[str]:
    """Yield pairs such that each element of both comes early: not every pair, as there would be too many."""
    if not left or not right:
        return []
    pairs = [
        (left[index % len(left)], right[index % len(right)]) for index in range(max(len(left), len(right)))
    ]
    pairs += [(one, right[0]) for one in left] + [(left[0], one) for one in right]
    pairs += [(one, right[-1]) for one in left] + [(left[-1], one) for one in right]
    return list(dict.fromkeys(one + other for one, other in pairs))


def _part_samples(code: Any, argument: Any, alphabet: str, groups: dict[int, str], maximum: int) -> list[str]:
    if code in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
        return _characters(code, argument, alphabet)[:maximum] or ["a"]
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        minimum, greatest, body = argument
        times = min(max(minimum, 1), 64) if greatest else 0
        once = _samples(list(body), alphabet, groups, maximum)
        return [sample * times for sample in once] if minimum else ["", *once][:maximum]
    if code is op.SUBPATTERN:
        samples = _samples(list(argument[3]), alphabet, groups, maximum)
        if argument[0] is not None:
            groups[argument[0]] = samples[0]
        return samples
    if code is op.ATOMIC_GROUP:
        return _samples(list(argument), alphabet, groups, maximum)
    if code is op.BRANCH:
        return [_samples(list(branch), alphabet, groups, 1)[0] for branch in argument[1]]
    if code is op.GROUPREF:
        return [groups.get(argument, "")]
    return [""]


# --- pumps: repeatable parts, with a prefix that leads to each and a suffix


def _pumps(nodes: list[Any], alphabet: str) -> Iterator[Pump]:
    groups: dict[int, str] = {}
    for index, (code, argument) in enumerate(nodes):
        befores = _samples(nodes[:index], alphabet, groups, 2)
        after = _samples(nodes[index + 1 :], alphabet, dict(groups), 1)[0]
        for pump in _own_pumps(code, argument, alphabet, groups):
            for before in befores:
                yield Pump(before + pump.before, pump.repeated, pump.after + after)


def _own_pumps(code: Any, argument: Any, alphabet: str, groups: dict[int, str]) -> Iterator[Pump]:
    repeats = code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
    if repeats and argument[1] >= _MANY:
        for sample in _samples(list(argument[2]), alphabet, groups, 12):
            yield Pump("", sample, "")
    for inner in _inner(code, argument):
        yield from _pumps(inner, alphabet)

"""Patterns with wildcards have the results of fnmatch, in bounded time."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mockube.apimachinery.wildcards import (
    MAX_WILDCARDS,
    WildcardsTooCostly,
    escape_wildcards,
    matches_wildcards,
    parse_wildcards,
)
from tests.support.hostile.doubling import check_linear, cost

MIB = 1 << 20
ENOUGH = 0.3
"""Seconds of CPU time for a text of 1 MiB; one with backtracking takes hours."""

patterns = st.text("aab*?[]!-^\\cé\n", max_size=9)
texts = st.text("aab", max_size=9) | st.text("abcé\n\udc80[]!-", max_size=9)


def expected_ends(text, pattern, cut):
    ends = [end for end in range(len(text) + 1) if fnmatchcase(cut(end), pattern)]
    return (min(ends), max(ends)) if ends else (None, None)


@given(texts, patterns)
@example("bcéaé\na", "?*[a[]")
@example("aa!a][ab", "?[ab-]*")
@example("", "*?")
def test_results_are_those_of_fnmatch(text, pattern):
    parsed = parse_wildcards(pattern)
    assert parsed.matches(text) is fnmatchcase(text, pattern)
    shortest, longest = expected_ends(text, pattern, lambda end: text[:end])
    assert parsed.prefix_end(text, is_greedy=False) == shortest
    assert parsed.prefix_end(text, is_greedy=True) == longest
    longest, shortest = expected_ends(text, pattern, lambda start: text[start:])
    assert parsed.suffix_start(text, is_greedy=False) == shortest
    assert parsed.suffix_start(text, is_greedy=True) == longest


@given(patterns)
def test_escaped_text_matches_itself_only(text):
    parsed = parse_wildcards(escape_wildcards(text))
    assert parsed.matches(text)
    assert not parsed.matches(text + "a")
    assert parsed.prefix_end(text, is_greedy=False) == len(text)


HARD = {
    "a long literal": lambda size: ("a" * size, "*" + "a" * (size // 2) + "b"),
    "a literal that occurs late": lambda size: ("ab" * (size // 2), "*" + "ab" * (size // 8) + "c*"),
    "many stars": lambda size: ("a" * size, "*a" * min(size // 4, 2_000) + "*b"),
    "any characters": lambda size: ("a" * size, "*" + "?" * min(size // 4, 900) + "b*"),
    "classes": lambda size: ("a" * size, "*" + "[ab]" * min(size // 4, 200) + "[!a]*"),
    "a late class": lambda size: ("ab" * (size // 2), "*[a-b]?b[c-d]"),
    "many parts with wildcards": lambda size: ("a" * size, "*a?" * min(size // 4, 400) + "*b"),
    "beyond ASCII": lambda size: ("é" * size, "*[a-f]?*"),
    "a long class": lambda size: ("a" * size, "*[" + "xy" * (size // 2) + "]z*"),
    "open brackets": lambda size: ("a" * size, "[" * min(size // 4, 4_000) + "*"),
    "closed brackets": lambda size: ("[" * size, "[[]" * min(size // 4, 4_000) + "*"),
}


def use(given):
    text, pattern = given
    parsed = parse_wildcards(pattern)
    parsed.matches(text)
    for is_greedy in (False, True):
        parsed.prefix_end(text, is_greedy=is_greedy)
        parsed.suffix_start(text, is_greedy=is_greedy)


@pytest.mark.timed
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in HARD.items()])
def test_time_is_linear(make):
    check_linear(make, use, 20_000, negligible=0.02)


@pytest.mark.timed
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in HARD.items()])
def test_long_text_takes_little_time(make):
    assert cost(use, make(MIB), runs=2) < 5 * ENOUGH


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        pytest.param("a", "*?" * MAX_WILDCARDS, id="wildcards"),
        pytest.param("a", "[" + "a-b" * MAX_WILDCARDS + "]", id="ranges"),
        pytest.param("a" * MIB, "*" + "a" * 2_000 + "?*", id="a long part"),
        pytest.param("a" * MIB, "*?" + "".join(map(chr, range(97, 160))) + "*", id="different characters"),
        pytest.param("é" * MIB, "*?abcde*", id="different characters beyond ASCII"),
        pytest.param(
            "".join(map(chr, range(0x10000, 0x110000))), "*[a-z]?*", id="a text of different characters"
        ),
    ],
)
def test_product_of_lengths_is_limited(text, pattern):
    with pytest.raises(WildcardsTooCostly):
        matches_wildcards(text, pattern)

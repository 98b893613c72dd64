"""Patterns of criteria match as Python's fnmatch, and cost no more than they say."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.control.patterns import MAX_PATTERN, Pattern

patterns = st.text("aab*?[]!-^\\&|~cé\n", max_size=9)
texts = st.text("aab", max_size=9) | st.text("abcé\n\udc80[]!-", max_size=9)


@given(texts, patterns)
def test_pattern_matches_as_fnmatch(text, pattern):
    has_open_class = "[" in re.sub(r"(?s)\[!?.[^]]*\]", "", pattern)
    if has_open_class:
        with pytest.raises(ValueError, match=r"a \[ without a \]"):
            Pattern(pattern)
        return
    assert Pattern(pattern).matches(text) is fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        ("web", 0),
        ("web-?", 1),
        ("web-*", 1),
        ("web**", 1),
        ("*", 1),
        ("*web", 9),
        ("*web*", 9),
        ("a*b*cd", 15),
    ],
)
def test_pattern_costs_what_follows_its_first_star(pattern, cost):
    assert Pattern(pattern).cost == cost


def test_wildcards_see_the_beginning_of_a_long_text():
    assert Pattern("a*").matches("a" * 100_000)
    assert not Pattern("*b").matches("a" * MAX_PATTERN + "b")


def test_longer_pattern_is_refused():
    Pattern("*" * MAX_PATTERN)
    with pytest.raises(ValueError, match="a pattern has at most 512 characters, not 513"):
        Pattern("*" * (MAX_PATTERN + 1))


@pytest.mark.parametrize("pattern", ["[", "[a-", "web-[0-9", "[]", "[!]", "[a][b", "[!"])
def test_class_without_end_is_refused(pattern):
    with pytest.raises(ValueError, match=r"has a \[ without a \]: write \[\[\] for a \["):
        Pattern(pattern)


@pytest.mark.parametrize(("pattern", "text"), [("[[]a", "[a"), ("[]]", "]"), ("[!]]", "a"), ("a]", "a]")])
def test_bracket_is_written_in_a_class(pattern, text):
    assert Pattern(pattern).matches(text)

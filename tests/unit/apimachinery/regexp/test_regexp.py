"""Regular expressions are parsed, refused and matched as in Go, in linear time."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mockube.apimachinery.cancellation import Cancelled, cancelled_by
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import MAX_STEPS, MAX_UNCHECKED_TEXT, check, contains_match
from mockube.apimachinery.regexp.parser import parse
from tests.support.hostile.doubling import check_linear
from tests.unit.apimachinery.regexp.go_answers import MATCHES, REFUSED, TEXTS


@pytest.mark.parametrize(("pattern", "message"), REFUSED, ids=[repr(row[0]) for row in REFUSED])
def test_invalid_pattern_is_refused_with_gos_message(pattern, message):
    with pytest.raises(RegexpError) as refused:
        check(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"


@pytest.mark.parametrize(("pattern", "expected"), MATCHES, ids=[repr(row[0]) for row in MATCHES])
def test_pattern_matches_as_in_go(pattern, expected):
    check(pattern)
    assert [contains_match(pattern, text) for text in TEXTS] == [mark == "1" for mark in expected]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        pytest.param("(" * 5000, r"missing closing \)", id="groups without an end"),
        pytest.param("(" * 1000 + ")" * 1000, "expression nests too deeply", id="groups"),
        pytest.param("(" * 500 + "a" + "|bc)" * 500, "expression nests too deeply", id="alternatives"),
        pytest.param("a" + "{2}?" * 2, "invalid nested repetition operator", id="repetitions"),
        pytest.param(r"\pL{1000}", "expression too large", id="a program that is too large"),
        pytest.param(r"((\w{100}){10}|x{1000}){2}", "invalid repeat count", id="too many copies"),
    ],
)
def test_limits_of_go_apply(pattern, problem):
    with pytest.raises(RegexpError, match=f"error parsing regexp: {problem}: `"):
        check(pattern)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pattern", ["(" * 999 + ")" * 999, "(?:" * 5000 + ")" * 5000, "a" * 100_000, "(a|b)" * 20_000]
)
def test_long_pattern_within_limits_is_accepted(pattern):
    assert check(pattern) > 0


@pytest.mark.timed
@pytest.mark.parametrize(
    "part", ["(", "[", "[[:", "(a|", "a|", "a{1}", r"\x", r"\Q", "(?i)", "(?P<", r"\p{", "a", "é", r"\pL"]
)
def test_pattern_is_parsed_in_linear_time(part):
    def read(pattern):
        with contextlib.suppress(RegexpError):
            parse(pattern)

    check_linear(lambda size: part * (size // len(part)), read, 20_000)


@pytest.mark.timed
@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(a|aa)+$", "(.*)*b", "(x+x+)+y", "^(a?){30}a{30}$", r"(\w+\s?)*!", "a*a*a*a*a*b"]
)
def test_pattern_is_matched_in_linear_time(pattern):
    check(pattern)

    check_linear(lambda size: "a" * size + "\n", lambda text: contains_match(pattern, text), 400_000)


@pytest.mark.timed
def test_pattern_that_backtracks_elsewhere_is_matched_fast():
    started = time.thread_time()
    assert not contains_match("^(a+)+$", "a" * 5000 + "!")
    assert time.thread_time() - started < 1


@pytest.mark.thorough
def test_evicted_programs_are_recompiled_by_several_threads():
    patterns = [rf"^\pL{{{size}}}$" for size in range(200, 214)]
    texts = ["a" * size for size in range(200, 214)]
    with ThreadPoolExecutor(3) as threads:
        found = threads.map(contains_match, patterns * 2, texts * 2)
        assert all(found)


HEAVY = "(?:[a-z]?){1000}" * 80


def test_overlong_search_is_refused():
    with pytest.raises(RegexpError):
        contains_match(HEAVY, "a" * (MAX_STEPS // check(HEAVY) + 1))
    assert contains_match("a$", "a" * MAX_UNCHECKED_TEXT * 2)


def test_cancelled_search_does_not_start():
    gone = threading.Event()
    gone.set()
    with cancelled_by(gone), pytest.raises(Cancelled):
        contains_match("a", "a")

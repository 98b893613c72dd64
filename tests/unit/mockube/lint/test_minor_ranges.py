"""Minors as users write them and as reports print them."""

from argparse import ArgumentTypeError

import pytest

from mockube.lint.minor_ranges import ALL, format_minors, read_minors


@pytest.mark.parametrize(
    ("text", "minors"),
    [
        ("1.31", ["1.31"]),
        ("v1.31", ["1.31"]),
        ("1.35, 1.33", ["1.33", "1.35"]),
        ("1.29-1.31", ["1.29", "1.30", "1.31"]),
        ("1.36-", ["1.36", "1.37"]),
        ("-1.30", ["1.29", "1.30"]),
        ("1.29-1.30,1.30,1.37", ["1.29", "1.30", "1.37"]),
        ("all", [*ALL]),
    ],
)
def test_minors_are_read_from_oldest_to_newest(text, minors):
    assert read_minors(text) == minors


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1.28", '"1.28" is not one of the minor releases 1.29 to 1.37'),
        ("1.31.4", '"1.31.4" is not available: the release of 1.31 is 1.31.14'),
        ("", '"" is not one of the minor releases 1.29 to 1.37'),
        ("1.33-1.31", "1.33-1.31 begins after its end: write 1.31-1.33"),
    ],
)
def test_invalid_minors_are_refused(text, problem):
    with pytest.raises(ArgumentTypeError) as error:
        read_minors(text)
    assert str(error.value) == problem


@pytest.mark.parametrize(
    ("minors", "text"),
    [
        (["1.29"], "1.29"),
        (["1.29", "1.30", "1.31"], "1.29-1.31"),
        (["1.29", "1.30", "1.33"], "1.29-1.30, 1.33"),
    ],
)
def test_minors_that_follow_each_other_are_printed_as_range(minors, text):
    assert format_minors(minors) == text

"""String formats are checked by upstream's rules and in linear time."""

import pytest

from mockube.apimachinery.formats import rule
from tests.support.hostile.doubling import check_linear
from tests.unit.apimachinery.format_answers import ANSWERS


@pytest.mark.parametrize("form", ANSWERS)
def test_format_check_agrees_with_upstream(form):
    holds = rule(form)
    assert {text: holds(text) for text in ANSWERS[form]} == ANSWERS[form]


@pytest.mark.parametrize("form", ["ip", "time", "int32", "unheard-of", ""])
def test_unknown_formats_are_ignored(form):
    assert rule(form) is None


def test_hyphens_in_format_name_are_ignored():
    assert rule("date-time") is rule("datetime")
    assert rule("i-p-v-4") is rule("ipv4")


@pytest.mark.timed
@pytest.mark.parametrize(
    "part", ["0", "1 ", "a", "a-", "a.", ":", "0:", "(", '"', "\\(", "a@", "<", "%", "[", "=", "é", ",a@b"]
)
@pytest.mark.parametrize("form", ANSWERS)
def test_format_is_checked_in_linear_time(form, part):
    check_linear(lambda size: part * (size // len(part)), rule(form), 100_000)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import durations
from mockube.apimachinery.durations import DurationError

SECOND = 10**9
MAX_INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("span", "text"),
    [
        pytest.param(0, "0s", id="nothing"),
        pytest.param(1, "1ns", id="nanosecond"),
        pytest.param(1500, "1.5µs", id="microseconds"),
        pytest.param(250 * 10**6, "250ms", id="milliseconds"),
        pytest.param(SECOND, "1s", id="second"),
        pytest.param(SECOND + 1, "1.000000001s", id="second and a nanosecond"),
        pytest.param(90 * SECOND, "1m30s", id="minutes"),
        pytest.param(3600 * SECOND, "1h0m0s", id="hour"),
        pytest.param(-5400 * SECOND, "-1h30m0s", id="negative"),
        pytest.param(MAX_INT64, "2562047h47m16.854775807s", id="longest"),
    ],
)
def test_duration_is_printed_and_parsed(span, text):
    assert durations.format_duration(span) == text
    assert durations.parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        pytest.param("0", 0, id="zero without unit"),
        pytest.param("-0", 0, id="minus zero"),
        pytest.param("+5m", 300 * SECOND, id="plus"),
        pytest.param("1.5h", 5400 * SECOND, id="fraction"),
        pytest.param(".5s", SECOND // 2, id="no whole part"),
        pytest.param("1.s", SECOND, id="no fractional part"),
        pytest.param("1s1s", 2 * SECOND, id="repeated unit"),
        pytest.param("1us1\N{GREEK SMALL LETTER MU}s", 2000, id="both micro signs"),
        pytest.param("-9223372036854775808ns", -(2**63), id="shortest"),
        pytest.param("0" * 5000 + "1s", SECOND, id="many zeros"),
        pytest.param("0." + "1" * 30 + "ns", 0, id="fraction of a nanosecond"),
    ],
)
def test_duration_is_parsed(text, span):
    assert durations.parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="empty"),
        pytest.param("-", 'time: invalid duration "-"', id="sign"),
        pytest.param("soon", 'time: invalid duration "soon"', id="word"),
        pytest.param(".s", 'time: invalid duration ".s"', id="no digits"),
        pytest.param("1", 'time: missing unit in duration "1"', id="no unit"),
        pytest.param("1h2", 'time: missing unit in duration "1h2"', id="no unit at the end"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="day"),
        pytest.param("1h 2m", 'time: unknown unit "h " in duration "1h 2m"', id="space"),
        pytest.param(
            "9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="just too long"
        ),
        pytest.param("9223372036854775809ns", 'time: invalid duration "9223372036854775809ns"', id="longer"),
        pytest.param("2562048h", 'time: invalid duration "2562048h"', id="too long in its unit"),
        pytest.param("2562047.9h", 'time: invalid duration "2562047.9h"', id="too long by its fraction"),
        pytest.param("2562047h50m", 'time: invalid duration "2562047h50m"', id="too long together"),
        pytest.param(f"{'9' * 5000}s", f'time: invalid duration "{"9" * 5000}s"', id="very long"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(DurationError) as refused:
        durations.parse_duration(text)
    assert str(refused.value) == message


@given(st.integers(-MAX_INT64, MAX_INT64))
def test_printed_duration_parses_to_itself(span):
    assert durations.parse_duration(durations.format_duration(span)) == span


@given(st.text("0123456789.-+hmsnuµ", max_size=12) | st.text())
def test_any_duration_text_is_parsed_or_refused(text):
    try:
        span = durations.parse_duration(text)
    except DurationError:
        return
    assert abs(span) <= MAX_INT64 + 1

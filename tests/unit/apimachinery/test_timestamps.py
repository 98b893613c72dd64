from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import timestamps
from mockube.apimachinery.timestamps import TimestampError

START = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MOMENTS = st.integers(0, (END - START) // MICROSECOND).map(lambda passed: START + passed * MICROSECOND)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("2030-01-02T03:04:05Z", datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), id="UTC"),
        pytest.param("2030-01-02T03:04:05+02:30", datetime(2030, 1, 2, 0, 34, 5, tzinfo=UTC), id="east"),
        pytest.param("2030-01-02T03:04:05-07:00", datetime(2030, 1, 2, 10, 4, 5, tzinfo=UTC), id="west"),
        pytest.param("2030-01-02T03:04:05+24:60", datetime(2030, 1, 1, 2, 4, 5, tzinfo=UTC), id="far east"),
        pytest.param(
            "2030-01-02T3:04:05Z", datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), id="hour of one digit"
        ),
        pytest.param(
            "2030-01-02T03:04:05.5Z", datetime(2030, 1, 2, 3, 4, 5, 500000, tzinfo=UTC), id="fraction"
        ),
        pytest.param(
            "2030-01-02T03:04:05,25Z", datetime(2030, 1, 2, 3, 4, 5, 250000, tzinfo=UTC), id="comma"
        ),
        pytest.param(
            "2030-01-02T03:04:05.123456789Z",
            datetime(2030, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),
            id="nanoseconds",
        ),
        pytest.param("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC), id="leap day"),
        pytest.param("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC), id="Go's zero"),
    ],
)
def test_parse_time(text, moment):
    assert timestamps.parse_time(text) == moment


def parse_error(text, rest, element, layout="2006-01-02T15:04:05Z07:00"):
    return f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"'


@pytest.mark.parametrize(
    ("text", "rest", "element"),
    [
        pytest.param("", "", "2006", id="empty"),
        pytest.param("yesterday", "yesterday", "2006", id="word"),
        pytest.param("203-01-02T03:04:05Z", "203-01-02T03:04:05Z", "2006", id="year of three digits"),
        pytest.param("2030/01-02T03:04:05Z", "/01-02T03:04:05Z", "-", id="slash"),
        pytest.param("2030-1-02T03:04:05Z", "1-02T03:04:05Z", "01", id="month of one digit"),
        pytest.param("2030-01-02", "", "T", id="date only"),
        pytest.param("2030-01-02 03:04:05Z", " 03:04:05Z", "T", id="space"),
        pytest.param("2030-01-02T03:04:05", "", "Z07:00", id="no zone"),
        pytest.param("2030-01-02T03:04:05+0200", "+0200", "Z07:00", id="zone without a colon"),
        pytest.param("2030-01-02T03:04:05x02:00", "x02:00", "Z07:00", id="zone without a sign"),
    ],
)
def test_unparsable_time_has_gos_message(text, rest, element):
    with pytest.raises(TimestampError) as refused:
        timestamps.parse_time(text)
    assert str(refused.value) == parse_error(text, rest, element)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("2030-00-02T03:04:05Z", "month out of range", id="month 0"),
        pytest.param("2030-13-02T03:04:05Z", "month out of range", id="month 13"),
        pytest.param("2030-02-30T03:04:05Z", "day out of range", id="day of another month"),
        pytest.param("2030-01-00T03:04:05Z", "day out of range", id="day 0"),
        pytest.param("1900-02-29T03:04:05Z", "day out of range", id="no leap year"),
        pytest.param("2030-01-02T24:04:05Z", "hour out of range", id="hour"),
        pytest.param("2030-01-02T03:60:05Z", "minute out of range", id="minute"),
        pytest.param("2030-01-02T03:04:60Z", "second out of range", id="second"),
        pytest.param("2030-01-02T03:04:05+25:00", "time zone offset hour out of range", id="offset hour"),
        pytest.param(
            "2030-01-02T03:04:05+25:xx", "time zone offset hour out of range", id="offset hour first"
        ),
        pytest.param("2030-01-02T03:04:05+02:61", "time zone offset minute out of range", id="offset minute"),
        pytest.param("2030-01-02T03:04:05Z!", 'extra text: "!"', id="extra text"),
        pytest.param("0000-02-29T03:04:05Z", "year out of range", id="year 0"),
        pytest.param("9999-12-31T23:59:59-01:00", "year out of range", id="year 10000"),
    ],
)
def test_time_out_of_range_has_gos_message(text, problem):
    with pytest.raises(TimestampError) as refused:
        timestamps.parse_time(text)
    assert str(refused.value) == f'parsing time "{text}": {problem}'


def test_time_in_message_is_quoted_bytewise():
    with pytest.raises(TimestampError) as refused:
        timestamps.parse_time('é"')
    assert str(refused.value) == parse_error(r"\xc3\xa9\"", r"\xc3\xa9\"", "2006")


def test_parse_micro_time():
    moment = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    assert timestamps.parse_micro_time("2030-01-02T03:04:05.000678Z") == moment
    assert timestamps.parse_micro_time("2030-01-02T05:04:05.000678+02:00") == moment


@pytest.mark.parametrize(
    ("text", "rest", "element"),
    [
        pytest.param("2030-01-02T03:04:05Z", "Z", ".000000", id="no fraction"),
        pytest.param("2030-01-02T03:04:05.12Z", ".12Z", ".000000", id="short fraction"),
        pytest.param("2030-01-02T03:04:05.123456789Z", "789Z", "Z07:00", id="long fraction"),
    ],
)
def test_parse_micro_time_refuses(text, rest, element):
    with pytest.raises(TimestampError) as refused:
        timestamps.parse_micro_time(text)
    assert str(refused.value) == parse_error(text, rest, element, "2006-01-02T15:04:05.000000Z07:00")


def test_format_truncates_fractions():
    moment = datetime(30, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
    assert timestamps.format_time(moment) == "0030-01-02T01:04:05Z"
    assert timestamps.format_micro_time(moment) == "0030-01-02T01:04:05.000678Z"


@given(MOMENTS)
def test_printed_time_parses_to_itself(moment):
    assert timestamps.parse_micro_time(timestamps.format_micro_time(moment)) == moment
    assert timestamps.parse_time(timestamps.format_time(moment)) == moment.replace(microsecond=0)


@given(st.text("0123456789-T:.,Z+ ", max_size=30) | st.text())
def test_any_time_text_is_parsed_or_refused(text):
    try:
        moment = timestamps.parse_time(text)
    except TimestampError:
        return
    assert timestamps.parse_time(timestamps.format_time(moment)) == moment.replace(microsecond=0)

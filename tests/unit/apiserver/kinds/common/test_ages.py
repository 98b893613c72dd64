from datetime import timedelta

import pytest

from mockube.apiserver.kinds.common import ages
from tests.support.server.printed_columns import NOW, time_ago

SECOND, MINUTE, HOUR, DAY, YEAR = 1, 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (1.9, "1s"),
        (2 * MINUTE - 1, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (48 * HOUR - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + 364 * DAY, "8y"),
    ],
)
def test_duration_is_printed_in_suitable_units(seconds, expected):
    assert ages.human_duration(timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"creationTimestamp": time_ago(hours=26)}, "26h", id="created"),
        pytest.param({}, "<unknown>", id="never created"),
        pytest.param({"creationTimestamp": None}, "<unknown>", id="created at null"),
    ],
)
def test_age_is_time_since_creation(metadata, expected):
    assert ages.age({"metadata": metadata}, NOW) == expected

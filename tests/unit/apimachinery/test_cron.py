"""Cron schedules have the same next times as in robfig/cron v3."""

from pathlib import Path

import pytest

from mockube.apimachinery import cron
from mockube.apimachinery.timestamps import format_time, parse_time

ROWS = [line.split("|") for line in (Path(__file__).parent / "cron_times.txt").read_text().splitlines()]
"""A time, a schedule, and the next times of upstream's library; year 1 means none."""


@pytest.mark.parametrize(("begin", "schedule", "expected"), ROWS)
def test_next_times_are_upstreams(begin, schedule, expected):
    parsed, time, found = cron.parse(schedule), parse_time(begin), []
    for _ in range(4):
        time = parsed.next(time)
        found.append(format_time(time))
    assert found == expected.split()


@pytest.mark.parametrize(
    ("schedule", "same"),
    [
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@annually", "0 0 1 1 *"),
        ("@midnight", "0 0 * * ?"),
    ],
)
def test_descriptors_are_schedules(schedule, same):
    assert cron.parse(schedule) == cron.parse(same)


@pytest.mark.parametrize(
    ("text", "expected"), [("1h30m", "T12:00:07Z"), ("1ms", "T10:30:08Z"), ("90s", "T10:31:37Z")]
)
def test_every_descriptor_repeats_at_interval(text, expected):
    begin = parse_time("2026-11-21T10:30:07Z")
    assert format_time(cron.parse(f"@every {text}").next(begin)).endswith(expected)

"""The initial revision of a new store is above those of earlier stores, and exact as a double."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apiserver.store import REVISION_BUMP, initial_revision

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WRITES_PER_SECOND = 200_000
"""An upper bound of the write rate of any store."""
EXACT_AS_DOUBLE = 2**53


def test_initial_revision_is_time_in_microseconds():
    assert initial_revision(NOW) == int(NOW.timestamp()) * 1_000_000


@pytest.mark.parametrize("ran", [timedelta(milliseconds=1), timedelta(seconds=1), timedelta(days=365)])
def test_constantly_written_store_stays_below_its_successor(ran):
    last = initial_revision(NOW) + int(ran.total_seconds() * WRITES_PER_SECOND)
    assert initial_revision(NOW + ran) > last


def test_initial_revisions_of_two_starts_in_one_second_differ():
    assert initial_revision(NOW + timedelta(microseconds=1)) > initial_revision(NOW)


def test_small_clock_setback_keeps_revisions_increasing():
    ran, back = timedelta(seconds=10), timedelta(seconds=5)
    last = initial_revision(NOW) + WRITES_PER_SECOND * 5
    assert initial_revision(NOW + ran - back) >= last


def test_initial_revision_is_exact_as_a_double():
    assert initial_revision(datetime(2255, 1, 1, tzinfo=UTC)) < EXACT_AS_DOUBLE


def test_initial_revision_before_1970_is_1():
    assert initial_revision(datetime(1960, 1, 1, tzinfo=UTC)) == 1


def test_initial_revision_is_above_restored_snapshot():
    assert initial_revision(NOW, restored=5_000) == initial_revision(NOW)
    ahead = initial_revision(NOW) + 3
    assert initial_revision(NOW, restored=ahead) == ahead + REVISION_BUMP

"""What distinguishes the processes of forks."""

from collections import Counter

from mockube.embedded.process_fork import SPREAD_SECONDS, spread_seconds


def test_routine_of_successive_processes_is_spread_evenly():
    for first in (1, 4711):
        slots = Counter(int(spread_seconds(pid) / SPREAD_SECONDS * 10) for pid in range(first, first + 50))
        assert sorted(slots) == [*range(10)]
        assert max(slots.values()) <= 6

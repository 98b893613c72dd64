"""Lookup of the watches whose interval contains a key."""

from hypothesis import given
from hypothesis import strategies as st

from mockube.etcd.embedded.hub import IntervalMap
from mockube.etcd.embedded.versions import covers
from mockube.etcd.kv import FROM_KEY, prefix_end

KEYS = st.binary(min_size=1, max_size=3)
INTERVALS = st.one_of(
    st.tuples(KEYS, st.none()),
    KEYS.map(lambda prefix: (prefix, prefix_end(prefix))),
    st.tuples(KEYS, st.one_of(KEYS, st.just(FROM_KEY))),
)


@given(st.lists(INTERVALS, max_size=12), st.lists(KEYS, max_size=8), st.data())
def test_interest_finds_exactly_intervals_containing_key(intervals, keys, data):
    interest: IntervalMap[int] = IntervalMap()
    for number, (key, range_end) in enumerate(intervals):
        interest.add(key, range_end, number)
    gone = data.draw(st.sets(st.integers(0, len(intervals) - 1))) if intervals else set()
    for number in gone:
        interest.remove(*intervals[number], number)
    kept = [(number, interval) for number, interval in enumerate(intervals) if number not in gone]
    for candidate in keys:
        wanted = {number for number, interval in kept if covers(*interval, candidate)}
        found = interest.of(candidate)
        assert set(found) == wanted
        assert len(found) == len(wanted)
    assert bool(interest) is bool(kept)
    for number, interval in kept:
        assert number in interest.at(*interval)

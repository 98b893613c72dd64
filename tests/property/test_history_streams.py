"""The history checker on watch streams, case by case."""

import pytest

from mockube.etcd.kv import FROM_KEY, KeyValue, Put, PutResult, Txn, TxnResult, WatchRequest
from tests.support.stores.handwritten_histories import (
    FIRST,
    ONE,
    SECOND,
    TWO,
    call,
    delete_event,
    kinds_of,
    kv,
    put,
    put_event,
    stream,
)
from tests.support.stores.history import Compact


def watch(**options):
    return WatchRequest(key=FROM_KEY, range_end=FROM_KEY, **options)


@pytest.mark.parametrize(
    ("watched", "kinds"),
    [
        pytest.param(stream((5, 3, put_event(ONE), put_event(TWO))), set(), id="both in one batch"),
        pytest.param(
            stream((2, 2, put_event(ONE)), (5, 3, put_event(TWO))), set(), id="one event in each batch"
        ),
        pytest.param(stream((2, 2, put_event(ONE))), set(), id="events still missing at the end"),
        pytest.param(stream((2, 2, put_event(ONE)), (5, 2)), set(), id="progress"),
        pytest.param(stream((5, 3, put_event(TWO))), {"missing event"}, id="missing event"),
        pytest.param(stream((5, 3, put_event(ONE))), {"missing event"}, id="missing last event"),
        pytest.param(stream((5, 3)), {"missing event"}, id="progress only"),
        pytest.param(
            stream((2, 2), (3, 2, put_event(ONE))), {"progress ahead"}, id="progress precedes event"
        ),
        pytest.param(
            stream((2, 3, put_event(ONE)), (5, 3, put_event(TWO))),
            {"progress ahead", "stale write"},
            id="progress beyond the last write",
        ),
        pytest.param(
            stream((5, 3, put_event(TWO), put_event(ONE))), {"old event"}, id="events in reverse order"
        ),
        pytest.param(
            stream((2, 2, put_event(ONE)), (5, 3, put_event(ONE), put_event(TWO))),
            {"repeated event"},
            id="repeated event",
        ),
        pytest.param(
            stream((5, 3, put_event(ONE), put_event(TWO)), (6, 2)),
            {"progress backwards"},
            id="progress decreases",
        ),
        pytest.param(
            stream((0.5, 2, put_event(ONE))),
            {"event from nowhere", "progress ahead", "stale write"},
            id="event before its write",
        ),
        pytest.param(
            stream((5, 2, put_event(ONE), put_event(TWO))),
            {"batch behind its events"},
            id="batch with an older revision",
        ),
        pytest.param(
            stream((5, 3, put_event(ONE), put_event(kv(b"?", 3, 2, 2)))), {"wrong event"}, id="another value"
        ),
        pytest.param(stream((5, 3, put_event(ONE), delete_event(3))), {"wrong event"}, id="another kind"),
        pytest.param(stream((5, 3, put_event(TWO)), request=watch(start_revision=3)), set(), id="resumed"),
        pytest.param(
            stream((5, 3, put_event(ONE), put_event(TWO)), request=watch(start_revision=3)),
            {"event before the start"},
            id="events before the start revision",
        ),
        pytest.param(
            stream((5, 3, put_event(TWO)), request=watch()),
            {"missing event"},
            id="started at the head before a later write",
        ),
        pytest.param(
            stream(
                (5, 3, put_event(ONE), put_event(TWO, ONE)), request=watch(start_revision=2, previous=True)
            ),
            set(),
            id="with the previous value",
        ),
        pytest.param(
            stream((5, 3, put_event(ONE), put_event(TWO)), request=watch(start_revision=2, previous=True)),
            {"wrong previous value"},
            id="without the previous value",
        ),
        pytest.param(
            stream((5, 3, put_event(ONE), put_event(TWO, ONE))),
            {"wrong previous value"},
            id="with an unrequested previous value",
        ),
        pytest.param(
            stream((5, 3, put_event(ONE)), request=WatchRequest(key=b"b", start_revision=2)),
            {"foreign event"},
            id="of another key",
        ),
    ],
)
def test_checker_finds_faults_of_watches(watched, kinds):
    assert kinds_of(FIRST, SECOND, watched) == kinds


def test_watch_from_head_may_start_before_or_after_concurrent_write():
    beside = put(b"1", 1, 4, 2)
    for first in (put_event(ONE), None):
        opened = stream((5, 2, *([first] if first else [])), request=watch())
        opened.called, opened.opened = 2, 3
        assert kinds_of(beside, opened) == set()


def test_checker_allows_missing_compacted_previous_value():
    stream_of_all = stream(
        (5, 3, put_event(ONE), put_event(TWO)), request=watch(start_revision=2, previous=True)
    )
    assert kinds_of(FIRST, SECOND, call(Compact(revision=3), 4, 5), stream_of_all) == set()


@pytest.mark.parametrize(
    ("batches", "kinds"),
    [
        pytest.param([(5, 3, put_event(ONE), put_event(TWO))], set(), id="first batch"),
        pytest.param([(5, 1), (6, 3, put_event(ONE), put_event(TWO))], set(), id="first batch with events"),
        pytest.param(
            [(5, 2, put_event(ONE)), (6, 3, put_event(TWO))], {"wrong previous value"}, id="second batch"
        ),
    ],
)
def test_checker_allows_missing_previous_values_in_first_batch_of_etcd(batches, kinds):
    watched = stream(*batches, request=watch(start_revision=2, previous=True))
    assert kinds_of(FIRST, SECOND, watched, first_batches_may_lack_previous=True) == kinds


@pytest.mark.parametrize(
    ("order", "kinds"),
    [
        pytest.param([0, 1], set(), id="in the order of the writes"),
        pytest.param([1, 0], {"shuffled revision"}, id="another order"),
    ],
)
def test_checker_finds_changes_of_one_revision(order, kinds):
    puts = [Put(key=key, value=key) for key in (b"b", b"a")]
    both = call(
        Txn(then=puts), 1, 2, TxnResult(revision=2, succeeded=True, results=[PutResult(revision=2)] * 2)
    )
    events = [
        put_event(KeyValue(key=put.key, value=put.value, create_revision=2, mod_revision=2, version=1))
        for put in puts
    ]
    assert kinds_of(both, stream((3, 2, *(events[place] for place in order)))) == kinds

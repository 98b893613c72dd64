import pytest

from mockube.etcd.kv import FROM_KEY, Event, EventKind, KeyValue, WatchBatch, WatchRequest
from mockube.etcd.remote.watch import EventOrder


def change(revision, key=b"k"):
    kv = KeyValue(key=key, value=b"", create_revision=revision, mod_revision=revision, version=1)
    return Event(kind=EventKind.PUT, kv=kv)


def order(start=10, *, key=b"k", range_end=None, progress=False):
    return EventOrder(WatchRequest(key=key, range_end=range_end, progress=progress), start)


def test_duplicate_events_are_dropped():
    watch = order()
    assert watch.accept([change(10), change(11)], 11) == [
        WatchBatch(revision=11, events=[change(10), change(11)])
    ]
    assert watch.accept([change(10), change(11), change(12)], 12) == [
        WatchBatch(revision=12, events=[change(12)])
    ]
    assert watch.accept([change(11), change(12)], 12) == []
    assert watch.position == 12


def test_events_before_start_revision_are_dropped():
    watch = order(start=10)
    assert watch.accept([change(8), change(9)], 9) == []
    assert watch.accept([], 4) == []
    assert watch.position == 9


@pytest.mark.parametrize(
    ("range_end", "expected"),
    [
        pytest.param(None, [b"k"], id="one key"),
        pytest.param(b"l", [b"k", b"ka"], id="an interval"),
        pytest.param(FROM_KEY, [b"k", b"ka", b"l"], id="interval without end"),
    ],
)
def test_events_outside_range_are_dropped(range_end, expected):
    watch = order(range_end=range_end)
    [batch] = watch.accept([change(10, key) for key in (b"a", b"k", b"ka", b"l")], 10)
    assert [event.kv.key for event in batch.events] == expected


def test_progress_notification_is_delivered_if_requested():
    without_progress, with_progress = order(), order(progress=True)
    assert without_progress.accept([], 30) == []
    assert without_progress.position == 30
    assert with_progress.accept([], 30) == [WatchBatch(revision=30)]
    assert with_progress.accept([], 30) == [WatchBatch(revision=30)]
    assert with_progress.accept([], 29) == []


def test_requested_progress_is_delivered_after_events():
    watch = order()
    assert watch.request_progress(12) == []
    assert watch.accept([change(11)], 11) == [WatchBatch(revision=11, events=[change(11)])]
    assert watch.accept([change(13)], 13) == [
        WatchBatch(revision=13, events=[change(13)]),
        WatchBatch(revision=13),
    ]
    assert watch.accept([], 14) == []


def test_requested_progress_is_immediate_if_nothing_is_missing():
    watch = order()
    watch.accept([], 12)
    assert watch.request_progress(11) == [WatchBatch(revision=12)]


def test_watch_of_future_revision_is_at_store_revision():
    assert order(start=100).request_progress(7) == [WatchBatch(revision=7)]


def test_latest_of_two_requested_progresses_is_delivered():
    watch = order()
    watch.request_progress(20)
    watch.request_progress(15)
    assert watch.accept([], 19) == []
    assert watch.accept([], 20) == [WatchBatch(revision=20)]

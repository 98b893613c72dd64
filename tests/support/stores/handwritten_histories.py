"""Histories written by hand, a call and a stream at a time, of one key in a store that was empty at revision 1."""

from mockube.etcd.errors import Interrupted
from mockube.etcd.kv import (
    FROM_KEY,
    Event,
    EventKind,
    KeyValue,
    Put,
    PutResult,
    Range,
    RangeResult,
    WatchBatch,
    WatchRequest,
)
from tests.support.stores.checker import faults_of
from tests.support.stores.history import NEVER, Call, History, Stream

WATCH_ALL = WatchRequest(key=FROM_KEY, range_end=FROM_KEY, start_revision=2)


def kv(value, mod, created=None, version=1, lease=0):
    return KeyValue(
        key=b"a", value=value, mod_revision=mod, create_revision=created or mod, version=version, lease=lease
    )


def call(request, called, returned, answer=None, error=None):
    return Call(client="c", request=request, called=called, returned=returned, answer=answer, error=error)


def put(value, called, returned, revision=None, lease=0):
    """A put; without a revision its response was lost."""
    lost = None if revision else Interrupted("lost")
    answer = PutResult(revision=revision) if revision else None
    return call(Put(key=b"a", value=value, lease=lease), called, returned, answer, lost)


def read(called, returned, revision, *kvs, at=0):
    answer = RangeResult(revision=revision, kvs=kvs, count=len(kvs))
    return call(Range(key=b"a", revision=at), called, returned, answer)


def stream(*batches, request=WATCH_ALL, error=None, ended=NEVER):
    """A watch opened at tick 0, with batches as (tick, revision, event, ...)."""
    return Stream(
        client="w",
        request=request,
        called=0,
        opened=0,
        batches=[(tick, WatchBatch(revision=revision, events=events)) for tick, revision, *events in batches],
        error=error,
        ended=ended,
    )


def put_event(each, previous=None):
    return Event(kind=EventKind.PUT, kv=each, previous=previous)


def delete_event(revision):
    tombstone = KeyValue(key=b"a", value=b"", create_revision=0, mod_revision=revision, version=0)
    return Event(kind=EventKind.DELETE, kv=tombstone)


def kinds_of(*happened, first_batches_may_lack_previous=False):
    """Return the kinds of fault in a history of a store that was empty at revision 1."""
    history = History(1)
    history.first_batches_may_lack_previous = first_batches_may_lack_previous
    history.calls = [each for each in happened if isinstance(each, Call)]
    history.streams = [each for each in happened if isinstance(each, Stream)]
    return {fault.partition(":")[0] for fault in faults_of(history)}


FIRST = put(b"1", 1, 2, 2)
SECOND = put(b"2", 3, 4, 3)
ONE, TWO = kv(b"1", 2), kv(b"2", 3, 2, 2)

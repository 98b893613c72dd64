"""The history checker on single calls: which histories it accepts, although they look odd, and which it rejects.

`tests/contract/test_broken_stores.py` tests it with many clients; here each rule is tested alone.
"""

import pytest

from mockube.etcd.errors import Compacted, FutureRevision
from mockube.etcd.kv import (
    Compare,
    Delete,
    DeleteResult,
    Put,
    PutResult,
    Range,
    Target,
    Txn,
    TxnResult,
    WatchRequest,
)
from tests.support.stores.checker import faults_of
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
    read,
    stream,
)
from tests.support.stores.history import NEVER, Compact, History, Revoke

SWAP = Txn(compare=[Compare(key=b"a", target=Target.MOD, operand=0)], then=[Put(key=b"a", value=b"2")])
PUT_AND_READ = Txn(then=[Put(key=b"a", value=b"2"), Range(key=b"a", revision=9)])
LOST = call(SWAP, 3, 4, TxnResult(revision=2, succeeded=False))
WON = call(SWAP, 3, 4, TxnResult(revision=3, succeeded=True, results=[PutResult(revision=3)]))


@pytest.mark.parametrize(
    ("happened", "kinds"),
    [
        pytest.param([], set(), id="no calls"),
        pytest.param([FIRST, read(3, 4, 2, ONE)], set(), id="read returns the preceding write"),
        pytest.param([FIRST, read(3, 4, 1)], {"stale read"}, id="read misses the preceding write"),
        pytest.param([put(b"1", 1, 4, 2), read(2, 3, 1)], set(), id="read misses a concurrent write"),
        pytest.param([put(b"1", 1, 4, 2), read(2, 3, 2, ONE)], set(), id="read returns a concurrent write"),
        pytest.param(
            [read(1, 2, 2, ONE), put(b"1", 3, 4, 2)],
            {"read from the future", "stale write"},
            id="read returns a later write",
        ),
        pytest.param([FIRST, read(3, 4, 2)], {"wrong answer"}, id="read differs from its revision"),
        pytest.param([FIRST, SECOND, read(5, 6, 3, ONE, at=2)], set(), id="read at an old revision"),
        pytest.param(
            [FIRST, SECOND, read(5, 6, 3, TWO, at=2)],
            {"wrong answer"},
            id="read at an old revision differs",
        ),
        pytest.param(
            [FIRST, put(b"2", 3, 4, 2)], {"revision reused", "stale write"}, id="two writes with one revision"
        ),
        pytest.param(
            [put(b"2", 3, 4, 2), put(b"1", 1, 2, 3)],
            {"stale write"},
            id="revisions contradict the order of writes",
        ),
        pytest.param([FIRST, put(b"2", 3, 4, 4)], {"revision from nowhere"}, id="revision without a write"),
        pytest.param([read(1, 2, 0)], {"revision from nowhere"}, id="read at revision 0"),
        pytest.param([FIRST, read(3, 4, 2, at=9)], {"wrong answer"}, id="read at a future revision"),
        pytest.param(
            [FIRST, call(Put(key=b"a", value=b"2", previous=True), 3, 4, PutResult(revision=3))],
            {"wrong answer"},
            id="write without previous value",
        ),
        pytest.param(
            [
                call(
                    PUT_AND_READ, 3, 4, TxnResult(revision=2, succeeded=True, results=[PutResult(revision=2)])
                )
            ],
            {"wrong answer"},
            id="write with a read at a future revision",
        ),
        pytest.param([FIRST, LOST], set(), id="failed comparison after a change"),
        pytest.param([FIRST, WON], {"lost update"}, id="successful comparison after a change"),
        pytest.param(
            [LOST], {"wrong answer", "revision from nowhere"}, id="failed comparison without a change"
        ),
        pytest.param(
            [FIRST, call(Delete(key=b"a"), 3, 4, DeleteResult(revision=2, deleted=0))],
            {"wrong answer"},
            id="deletion without effect on an existing key",
        ),
    ],
)
def test_checker_finds_faults_of_calls(happened, kinds):
    assert kinds_of(*happened) == kinds


@pytest.mark.parametrize(
    ("happened", "kinds"),
    [
        pytest.param([put(b"1", 1, 2)], set(), id="never read"),
        pytest.param([put(b"1", 1, 2), read(3, 4, 1)], set(), id="not executed"),
        pytest.param([put(b"1", 1, 2), read(3, 4, 2, ONE)], set(), id="executed"),
        pytest.param([put(b"1", 1, NEVER), read(2, 3, 1), read(4, 5, 2, ONE)], set(), id="executed late"),
        pytest.param(
            [put(b"1", 3, 4), read(1, 2, 2, ONE)], {"read from the future"}, id="read before the call"
        ),
        pytest.param(
            [put(b"1", 1, 2), read(3, 4, 2, kv(b"?", 2))],
            {"revision from nowhere", "wrong answer"},
            id="read with another value",
        ),
        pytest.param(
            [
                put(b"1", 1, 2),
                put(b"2", 3, 4),
                stream((5, 3, put_event(TWO)), request=WatchRequest(key=b"a", start_revision=3)),
            ],
            {"undecided"},
            id="two writes, one not watched",
        ),
        pytest.param(
            [put(b"1", 1, 2), put(b"2", 3, 4), stream((5, 3, put_event(ONE), put_event(TWO)))],
            set(),
            id="two writes, both watched",
        ),
        pytest.param(
            [
                put(b"1", 1, 2, 2, lease=5),
                call(Revoke(lease=5), 3, 4),
                stream((5, 3, put_event(kv(b"1", 2, lease=5)), delete_event(3))),
            ],
            set(),
            id="lease revoked",
        ),
        pytest.param(
            [put(b"1", 1, 2, 2), stream((5, 3, put_event(ONE), delete_event(3)))],
            {"revision from nowhere", "event from nowhere"},
            id="deletion without a write",
        ),
    ],
)
def test_checker_infers_result_of_write_without_response(happened, kinds):
    assert kinds_of(*happened) == kinds


@pytest.mark.parametrize(
    ("happened", "kinds"),
    [
        pytest.param(
            [call(Compact(revision=2), 5, 6), read(7, 8, 3, ONE, at=2)],
            set(),
            id="read at the compact revision",
        ),
        pytest.param(
            [call(Compact(revision=3), 5, 6), read(7, 8, 3, ONE, at=2)],
            {"read of the forgotten"},
            id="read below the compact revision",
        ),
        pytest.param(
            [call(Compact(revision=3), 5, 8), read(6, 7, 3, ONE, at=2)],
            set(),
            id="read during compaction",
        ),
        pytest.param(
            [call(Compact(revision=3), 5, 6), call(Range(key=b"a", revision=2), 7, 8, error=Compacted(2, 3))],
            set(),
            id="refused below the compact revision",
        ),
        pytest.param(
            [call(Compact(revision=2), 5, 6), call(Range(key=b"a", revision=2), 7, 8, error=Compacted(2, 2))],
            {"unjustified refusal"},
            id="refused at the compact revision",
        ),
        pytest.param(
            [call(Range(key=b"a", revision=2), 7, 8, error=Compacted(2, 3))],
            {"unjustified refusal"},
            id="refused without compaction",
        ),
        pytest.param(
            [call(Compact(revision=2), 5, 6), call(Compact(revision=2), 7, 8, error=Compacted(2, 2))],
            set(),
            id="repeated compaction refused",
        ),
        pytest.param(
            [call(Compact(revision=2), 7, 8, error=Compacted(2, 2))],
            {"unjustified refusal"},
            id="first compaction refused",
        ),
        pytest.param(
            [call(Range(key=b"a", revision=4), 5, 6, error=FutureRevision(4, 3))],
            set(),
            id="future revision refused",
        ),
        pytest.param(
            [call(Range(key=b"a", revision=3), 5, 6, error=FutureRevision(3, 2))],
            {"unjustified refusal"},
            id="current revision refused as future",
        ),
        pytest.param(
            [call(Compact(revision=3), 5, 6), stream(error=Compacted(2, 3), ended=7)],
            set(),
            id="watch cancelled by compaction",
        ),
        pytest.param(
            [call(Compact(revision=2), 5, 6), stream(error=Compacted(2, 2), ended=7)],
            {"unjustified cancellation"},
            id="watch cancelled at the compact revision",
        ),
        pytest.param(
            [
                call(Compact(revision=3), 5, 6),
                stream((4, 3, put_event(ONE), put_event(TWO)), error=Compacted(4, 3), ended=7),
            ],
            {"unjustified cancellation"},
            id="watch cancelled after all events",
        ),
    ],
)
def test_checker_finds_faults_of_compaction(happened, kinds):
    assert kinds_of(FIRST, SECOND, *happened) == kinds


def test_faults_of_history_are_readable():
    history = History(1)
    history.calls = [FIRST, read(3, 4, 1)]
    assert faults_of(history) == [
        "stale read: c's range a (ticks 3 to 4) saw revision 1, and 2 was known before it was called"
    ]

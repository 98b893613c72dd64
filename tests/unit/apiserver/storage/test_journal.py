"""The journal: one entry for each revision, in order, within its limits."""

import asyncio
import itertools

import msgspec
import orjson
import pytest

from mockube.apiserver.storage.journal import MAX_TEXT, Author, Journal
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import TooLarge
from mockube.etcd.kv import Compare, Delete, Put, Range, Target, Txn
from tests.support.event_loop import yield_to_loop

ALICE = Author(user="alice", verb="create")
BOB = Author(user="bob", verb="delete")
PUT = Txn(then=(Put(key=b"a", value=b"1"),))


@pytest.fixture
async def memory():
    store = MemoryStore(clock=SteppedClock())
    yield store
    await store.close()


def revisions_of(journal):
    return [entry.revision for entry in journal.entries()]


async def test_write_is_noted_under_its_revision(memory):
    journal = Journal()
    written = await journal.commit(memory, PUT, ALICE)
    deleted = await journal.commit(memory, Txn(then=(Delete(key=b"a"),)), BOB)
    assert (journal.author(written.revision), journal.author(deleted.revision)) == (ALICE, BOB)
    assert revisions_of(journal) == [written.revision, deleted.revision]


@pytest.mark.parametrize(
    "transaction",
    [
        pytest.param(Txn(then=(Delete(key=b"none"),)), id="deletion of a missing key"),
        pytest.param(Txn(then=(Range(key=b"a"),)), id="read"),
        pytest.param(
            Txn(compare=(Compare(key=b"a", target=Target.MOD, operand=9),), then=(Put(key=b"a", value=b""),)),
            id="conflict",
        ),
    ],
)
async def test_transaction_that_makes_no_revision_is_not_noted(memory, transaction):
    journal = Journal()
    await journal.commit(memory, PUT, ALICE)
    before = journal.entries()
    await journal.commit(memory, transaction, BOB)
    assert journal.entries() == before


async def test_failed_write_is_not_noted(memory):
    journal = Journal()
    with pytest.raises(TooLarge):
        await journal.commit(memory, Txn(then=(Put(key=b"a", value=b"x" * (4 << 20)),)), ALICE)
    assert not journal.entries()


def test_entries_are_in_the_order_of_revisions_whatever_the_order_of_responses():
    for order in itertools.permutations((2, 3, 5, 8)):
        journal = Journal()
        for revision in order:
            journal.note(revision, Author(user=str(revision), verb="create"))
        assert revisions_of(journal) == [2, 3, 5, 8]
        assert [journal.author(revision).user for revision in (2, 3, 5, 8)] == ["2", "3", "5", "8"]
        assert [journal.author(revision) for revision in (1, 4, 9)] == [None, None, None]


@pytest.mark.parametrize("others", [(), (6,), (4,), (4, 6)], ids=str)
def test_revision_keeps_its_first_author(others):
    journal = Journal()
    journal.note(5, ALICE)
    for revision in others:
        journal.note(revision, BOB)
    size = journal.bytes
    journal.note(5, BOB)
    assert journal.author(5) is ALICE
    assert revisions_of(journal) == sorted((5, *others))
    assert journal.bytes == size


def test_oldest_entries_are_dropped_beyond_the_number():
    journal = Journal(max_entries=3)
    for revision in range(2, 9):
        journal.note(revision, ALICE)
    assert revisions_of(journal) == [6, 7, 8]
    assert journal.author(5) is None


def test_oldest_entries_are_dropped_beyond_the_bytes():
    journal = Journal(max_bytes=3000)
    for revision in range(2, 9):
        journal.note(revision, Author(user="alice", verb="create", agent="x" * 1000))
    assert revisions_of(journal) == [7, 8]
    assert journal.bytes <= 3000


def test_bytes_are_those_of_the_entries_that_remain():
    journal, single = Journal(max_entries=1), Journal()
    journal.note(2, Author(user="x" * 900, verb="create"))
    journal.note(3, ALICE)
    single.note(3, ALICE)
    assert journal.bytes == single.bytes


def test_long_texts_of_clients_are_cut():
    long = "\N{PILE OF POO}" * (MAX_TEXT + 1)
    author = Author.of(user=long, agent=long, verb="create", audit_id=long)
    assert {len(author.user), len(author.agent), len(author.audit_id)} == {MAX_TEXT}


def test_author_is_json():
    author = Author.of(user="alice", agent="kubectl", verb="patch", manager="me", audit_id="1")
    assert orjson.loads(msgspec.json.encode(author)) == {
        "user": "alice",
        "agent": "kubectl",
        "verb": "patch",
        "fieldManager": "me",
        "auditId": "1",
    }
    assert msgspec.json.decode(msgspec.json.encode(author), type=Author) == author


async def test_time_of_a_write_is_that_of_the_clusters_clock(memory):
    clock = SteppedClock()
    journal, start = Journal(clock), clock.now().timestamp()
    first = await journal.commit(memory, PUT, ALICE)
    clock.advance(60)
    second = await journal.commit(memory, Txn(then=(Delete(key=b"a"),)), BOB)
    assert [entry.time - start for entry in journal.entries()] == [0, 60]
    found = [journal.newest_at(start + after) for after in (-1, 0, 59, 60, 1000)]
    assert [entry and entry.revision for entry in found] == [
        None,
        *[first.revision] * 2,
        *[second.revision] * 2,
    ]


def test_time_never_decreases():
    journal = Journal()
    for revision, time in ((2, 50.0), (3, 40.0), (5, 70.0), (4, 60.0)):
        journal.note(revision, ALICE, time=time)
    assert [entry.time for entry in journal.entries()] == [50, 50, 70, 70]


def test_older_entries_are_forgotten():
    journal = Journal()
    for revision in range(2, 6):
        journal.note(revision, ALICE)
    size = journal.bytes
    journal.forget_before(4)
    assert (revisions_of(journal), journal.bytes) == ([4, 5], size // 2)
    journal.forget_before(9)
    assert (journal.entries(), journal.bytes) == ([], 0)


async def test_store_on_a_disk_keeps_the_entries(tmp_path):
    clock = SteppedClock()
    store = await DurableStore.open(tmp_path, clock=clock)
    journal = Journal(clock, keeps_notes=True)
    for number in range(4):
        await journal.commit(
            store, Txn(then=(Put(key=b"a", value=b"%d" % number),)), BOB if number else ALICE
        )
    note = journal.record(ALICE)
    revision = await store.rewrite(b"a", [Put(key=b"ab", value=b"1")], is_excluded=lambda _: False, note=note)
    journal.note(revision, ALICE)
    await store.compact(3)
    await store.close()
    reopened = await DurableStore.open(tmp_path, clock=clock)
    restored = Journal(clock)
    restored.restore(reopened.take_notes())
    assert restored.entries() == journal.entries()[1:]
    assert reopened.take_notes() == []
    await reopened.close()


async def test_entries_of_an_advanced_clock_do_not_hold_back_the_times_after_a_restart():
    clock = SteppedClock()
    journal, start = Journal(clock), clock.now().timestamp()
    clock.advance(3600)
    notes = [(2, journal.record(ALICE)), (3, journal.record(BOB))]
    restarted = SteppedClock()
    restored = Journal(restarted)
    restored.restore(notes)
    restarted.advance(60)
    restored.note(4, ALICE)
    assert [entry.time - start for entry in restored.entries()] == [0, 0, 60]


class SlowStore:
    """A store that publishes a revision some time before its writer goes on."""

    def __init__(self, store):
        self._store, self.may_go_on = store, asyncio.Event()

    async def txn(self, transaction):
        result = await self._store.txn(transaction)
        await self.may_go_on.wait()
        return result


async def test_reader_waits_for_the_author_of_a_write_in_progress(memory):
    journal, slow = Journal(), SlowStore(memory)
    writing = asyncio.create_task(journal.commit(slow, PUT, ALICE))
    await yield_to_loop()
    revision = (await memory.range(Range(key=b"a"))).revision
    reading = asyncio.create_task(journal.wait_noted(revision))
    await yield_to_loop()
    assert not reading.done()
    later = SlowStore(memory)
    following = asyncio.create_task(journal.commit(later, PUT, BOB))
    slow.may_go_on.set()
    await reading
    assert journal.author((await writing).revision) == ALICE
    later.may_go_on.set()
    await following


async def test_reader_does_not_wait_for_a_revision_of_another_server(memory):
    journal, slow = Journal(), SlowStore(memory)
    revision = (await memory.txn(PUT)).revision
    writing = asyncio.create_task(journal.commit(slow, PUT, ALICE))
    await yield_to_loop()
    reading = asyncio.create_task(journal.wait_noted(revision))
    await yield_to_loop()
    slow.may_go_on.set()
    await reading
    await journal.wait_noted(revision)
    assert journal.author(revision) is None
    await writing

"""An unexpected error in a task or thread of a store is logged, and fails either its caller or the whole store."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.disk import DiskThread
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.group_commit import GroupCommit
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Interrupted, NoSpace, Unavailable
from mockube.etcd.kv import Put, Range
from tests.support.event_loop import until, yield_to_loop

FAULT = "a fault in the program"
OLD = [Put(key=b"/%d" % number, value=b"old") for number in range(5)]
NEW = [Put(key=b"/%d" % number, value=b"new") for number in range(5)]
ALL = Range(key=b"/", range_end=b"0")


def fail(*_args, **_fields):
    raise RuntimeError(FAULT)


async def fail_later(*_args, **_fields):
    fail()


async def wait_forever(*_args, **_fields):
    await asyncio.get_running_loop().create_future()


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture(params=["memory", "durable"])
async def store(request, tmp_path, clock):
    is_memory = request.param == "memory"
    store = MemoryStore(clock=clock) if is_memory else await DurableStore.open(tmp_path / "data", clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def durable(tmp_path, clock):
    store = await DurableStore.open(tmp_path / "data", clock=clock)
    yield store
    await store.close()


def logged_faults(caplog):
    texts = map(caplog.handler.format, caplog.records)
    return [text for text in texts if f"RuntimeError: {FAULT}" in text and "Traceback" in text]


async def values(store):
    return {kv.value for kv in (await store.range(ALL)).kvs}


def rewrite(store):
    return store.rewrite(b"/", NEW, is_excluded=lambda _: False)


async def test_failed_expiry_of_leases_ends_store(store, clock, caplog):
    await store.grant(1, lease=7)
    store.revoke = fail_later
    supervising = asyncio.create_task(store.supervise())
    clock.advance(60)
    await until(supervising.done)
    assert str(supervising.exception()) == FAULT
    (entry,) = logged_faults(caplog)
    assert "the store's task 'expire leases' failed" in entry


async def test_failed_checkpoint_ends_store(durable, caplog):
    result = await durable.put(Put(key=b"a", value=b"1"))
    durable._checkpoints.take = fail_later
    supervising = asyncio.create_task(durable.supervise())
    await durable.compact(result.revision)
    await until(supervising.done)
    assert str(supervising.exception()) == FAULT
    (entry,) = logged_faults(caplog)
    assert "the store's task 'checkpoint' failed" in entry


async def test_failed_group_commit_ends_store_and_fails_writes(durable, caplog):
    durable._commits._write = fail
    supervising = asyncio.create_task(durable.supervise())
    with pytest.raises(Interrupted, match=FAULT):
        await durable.put(Put(key=b"a", value=b"1"))
    await until(supervising.done)
    assert str(supervising.exception()) == FAULT
    with pytest.raises(Unavailable, match=FAULT):
        await durable.put(Put(key=b"a", value=b"2"))
    (entry,) = logged_faults(caplog)
    assert "the log's writer failed" in entry


async def test_cancelled_group_commit_ends_store(durable):
    supervising = asyncio.create_task(durable.supervise())
    durable._commits._task.cancel()
    await until(supervising.done)
    assert str(supervising.exception()) == "the log's writer was cancelled"
    with pytest.raises(Unavailable):
        await durable.put(Put(key=b"a", value=b"1"))


async def test_group_commit_that_returns_fails_its_writes(caplog):
    class ReturningGroupCommit(GroupCommit):
        async def _run(self):
            await self._wakeup.wait()

    failures = []
    commits = ReturningGroupCommit(None, 0, fail, on_failure=failures.append)
    commits.record([b"entry"], head=1, undo=lambda: None)
    with pytest.raises(Unavailable, match="it returned before the store was closed"):
        await commits.wait_durable()
    assert [str(error) for error in failures] == ["it returned before the store was closed"]
    assert caplog.messages == ["the log's writer failed"]
    await commits.thread.close()


async def test_cancelled_group_commit_reports_failure_and_fails_its_writes():
    failures = []
    commits = GroupCommit(None, 0, fail, on_failure=failures.append)
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "group commit"]
    commits.record([b"entry"], head=1, undo=lambda: None)
    writing = asyncio.create_task(commits.wait_durable())
    task.cancel()
    with pytest.raises(Unavailable, match="the event loop ended before the store was closed"):
        await writing
    assert [str(error) for error in failures] == ["the log's writer was cancelled"]
    await commits.thread.close()


async def test_failed_undo_is_reported_and_fails_its_writes():
    class FullLog:
        def append(self, *_args):
            raise NoSpace("the disk is full")

    failures = []
    commits = GroupCommit(FullLog(), 0, fail, on_failure=failures.append)
    commits.record([b"entry"], head=1, undo=fail)
    writing = asyncio.create_task(commits.wait_durable())
    await until(lambda: failures)
    await yield_to_loop()
    assert isinstance(writing.exception(), NoSpace)
    assert [str(error) for error in failures] == [FAULT]
    await commits.thread.close()


async def test_cancelled_task_ends_store(store, clock):
    """A task that is cancelled by what it awaits would end unnoticed, and leases would not expire any more."""
    await store.grant(1, lease=7)
    store.revoke = wait_forever
    supervising = asyncio.create_task(store.supervise())
    clock.advance(60)
    await until(lambda: [task for task in store._tasks if task.get_name() == "expire leases"])
    for task in store._tasks:
        task.cancel()
    await until(supervising.done)
    assert str(supervising.exception()) == "the store's task 'expire leases' was cancelled"


async def test_end_of_store_is_no_failure(store, clock, caplog):
    await store.grant(1, lease=7)
    store.revoke = wait_forever
    clock.advance(60)
    supervising = asyncio.create_task(store.supervise())
    await yield_to_loop()
    await store.close()
    await yield_to_loop()
    assert not supervising.done()
    assert not caplog.records
    supervising.cancel()


@pytest.mark.parametrize("place", ["_prepare", "_discard"])
async def test_failed_rewrite_is_raised_and_later_writes_continue(store, place):
    for put in OLD:
        await store.put(put)
    working = getattr(store._rewrites, place)
    setattr(store._rewrites, place, fail)
    with pytest.raises(RuntimeError, match=FAULT):
        await rewrite(store)
    setattr(store._rewrites, place, working)
    async with asyncio.timeout(60):
        await rewrite(store)
    assert await values(store) == {b"new"}


async def test_rewrite_that_fails_after_its_caller_is_logged(store, caplog):
    for put in OLD:
        await store.put(put)
    rewriting = asyncio.create_task(rewrite(store))
    while store._rewrites.end is None:
        await yield_to_loop()
    store._rewrites._prepare = fail
    rewriting.cancel()
    await until(lambda: store._rewrites.end is None and logged_faults(caplog))
    assert rewriting.cancelled()
    assert await values(store) == {b"old"}
    assert "a rewrite failed" in logged_faults(caplog)[0]


async def test_errors_of_thread_reach_callers_or_log(caplog):
    thread = DiskThread("test")
    thread.call_later(fail)
    with pytest.raises(RuntimeError, match=FAULT):
        await thread.call(fail)
    assert await thread.call(lambda: 7) == 7
    await thread.close()
    assert len(logged_faults(caplog)) == 1

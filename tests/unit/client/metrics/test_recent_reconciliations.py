"""The newest reconciliations of a queue, and what is kept of them."""

import asyncio

import pytest

from mockube.apimachinery import errors, status
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import Conflict, Details, Forbidden, Invalid
from mockube.client.metrics.recent_reconciliations import MAX_ACTIONS, MAX_PER_QUEUE
from mockube.client.queue.reconcile_loop import ReconcileLoop, RequeueWithBackoff
from mockube.client.resources import Key
from tests.support.event_loop import until

A = Key("default", "a")


@pytest.fixture
async def run(clock, metrics):
    tasks = []

    async def reconcile(function, keys=(A,)):
        loop = ReconcileLoop("things", function, workers=1, clock=clock, metrics=metrics)
        tasks.append(asyncio.create_task(loop.run()))
        for key in keys:
            loop.add(key)
        await until(lambda: len(metrics.recent.of("things").newest()) >= min(len(keys), MAX_PER_QUEUE))
        return [each.tree() for each in metrics.recent.of("things").newest()]

    yield reconcile
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_reconciliation_is_kept_with_its_time_and_actions(run, clock, metrics):
    async def reconcile(key):
        clock.advance(0.25)
        metrics.recent.of("things").note_actions(key, ("create pods",) * 20)

    began = clock.now()
    (found,) = await run(reconcile)
    assert found == {
        "namespace": "default",
        "name": "a",
        "time": began,
        "seconds": 0.25,
        "result": "success",
        "actions": ("create pods",) * MAX_ACTIONS,
    }


async def test_failed_reconciliation_has_its_error(run):
    async def reconcile(_):
        raise Forbidden("no")

    (found,) = await run(reconcile)
    assert (found["result"], found["error"]) == ("error", "Forbidden: no")


SECRET_ERRORS = [
    Invalid("the value is hunter2", Details(kind="secrets", name="a")),
    status.invalid(GroupKind("", "Secret"), "a", [errors.invalid(ROOT.child("data"), "hunter2", "no")]),
    ValueError("the value is hunter2"),
]


@pytest.mark.parametrize("error", SECRET_ERRORS)
async def test_error_that_may_be_about_a_secret_quotes_nothing(run, error):
    async def reconcile(_):
        raise error

    (found,) = await run(reconcile)
    assert found["error"] == type(error).__name__


async def test_error_about_other_kind_of_that_name_is_quoted(run):
    async def reconcile(_):
        raise Invalid("no", Details(group="example.com", kind="Secret", name="a"))

    (found,) = await run(reconcile)
    assert found["error"] == "Invalid: no"


@pytest.mark.parametrize(
    "error",
    [
        Conflict("changed"),
        status.not_found(GroupResource("", "pods"), "a"),
        RequeueWithBackoff("later"),
    ],
)
async def test_error_that_belongs_to_the_work_has_no_text(run, error):
    async def reconcile(_):
        raise error

    (found,) = await run(reconcile)
    assert (found["result"], found.get("error")) == ("error", None)


async def test_cancelled_reconciliation_has_no_result(clock, metrics):
    has_begun = asyncio.Event()

    async def reconcile(key):
        recent.note_actions(key, ("create pods",))
        has_begun.set()
        await asyncio.Event().wait()

    recent = metrics.recent.of("things")
    observer = metrics.reconciles.of("things", 1)
    loop = ReconcileLoop("things", reconcile, workers=1, clock=clock, metrics=metrics, observer=observer)
    task = asyncio.create_task(loop._process(A))
    await has_begun.wait()
    assert observer.active.value == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (recent.newest(), recent._actions, observer.active.value, observer._errors.value) == ([], {}, 0, 0)


async def test_queue_keeps_the_newest(run, metrics):
    async def reconcile(_):
        pass

    keys = [Key("", f"key-{number}") for number in range(MAX_PER_QUEUE + 5)]
    await run(reconcile, keys)
    await until(lambda: metrics.recent.of("things").newest()[0].key == keys[-1])
    assert [each.key for each in metrics.recent.of("things").newest()] == keys[:4:-1]

"""The newest reconciliations of a queue, and what is kept of them."""

import asyncio

import pytest

from mockube.apimachinery.status import Details, Invalid
from mockube.client.metrics.recent_reconciliations import MAX_ACTIONS, MAX_PER_QUEUE
from mockube.client.queue.reconcile_loop import ReconcileLoop
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
        raise ValueError("no")

    (found,) = await run(reconcile)
    assert (found["result"], found["error"]) == ("error", "ValueError: no")


async def test_error_about_secret_quotes_nothing(run):
    async def reconcile(_):
        raise Invalid("the value is hunter2", Details(kind="secrets", name="a"))

    (found,) = await run(reconcile)
    assert found["error"] == "Invalid"


async def test_queue_keeps_the_newest(run, metrics):
    async def reconcile(_):
        pass

    keys = [Key("", f"key-{number}") for number in range(MAX_PER_QUEUE + 5)]
    await run(reconcile, keys)
    await until(lambda: metrics.recent.of("things").newest()[0].key == keys[-1])
    assert [each.key for each in metrics.recent.of("things").newest()] == keys[:4:-1]

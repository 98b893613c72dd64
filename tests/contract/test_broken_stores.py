"""The history checker reports the fault of every broken store, and none for a correct store."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import yield_to_loop
from tests.support.stores.broken_stores import BrokenStore, Restarts
from tests.support.stores.broken_watches import BreaksWatches
from tests.support.stores.checker import faults_of
from tests.support.stores.workload import Workload, assert_busy, count_events, run
from tests.support.stores.wrapped import LosesAnswers, WrappedStore

BROKEN = [
    kind for kind in (*BrokenStore.__subclasses__(), *BreaksWatches.__subclasses__()) if "fault" in vars(kind)
]


async def history_of(kind, seed):
    clock = SteppedClock()
    inner = MemoryStore(clock=clock)
    store = kind(inner)

    async def pass_time(seconds):
        clock.advance(seconds)
        await yield_to_loop()

    try:
        return await run(store, Workload(seed=seed, pass_time=pass_time))
    finally:
        await store.close()
        await inner.close()


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_fault_of_broken_store_is_detected(kind):
    faults = [fault for seed in range(3) for fault in faults_of(await history_of(kind, seed))]
    assert any(fault.startswith(f"{kind.fault}: ") for fault in faults), faults[:10]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [WrappedStore, LosesAnswers, Restarts], ids=lambda kind: kind.__name__)
async def test_history_of_correct_store_has_no_faults(kind, seed):
    history = await history_of(kind, seed)
    assert faults_of(history) == []
    assert_busy(history)


async def test_lost_answers_are_accounted_for():
    history = await history_of(LosesAnswers, seed=1)
    assert count_events(history)["outcome unknown"] > 10

"""Results and watch streams of concurrent clients are consistent with one history."""

import pytest

from tests.support.stores import backends
from tests.support.stores.checker import faults_of
from tests.support.stores.workload import assert_busy, run


@pytest.mark.parametrize("seed", range(4))
async def test_every_answer_and_watch_is_explained_by_a_history(backend, seed):
    history = await run(backend.store, backend.workload(seed))
    faults = faults_of(history)
    assert not faults, "\n".join(faults)
    assert_busy(history)


async def test_durable_store_continues_history_after_restart(tmp_path):
    history = None
    for seed in range(3):
        async with backends.durable(tmp_path) as backend:
            history = await run(backend.store, backend.workload(seed), history)
    faults = faults_of(history)
    assert not faults, "\n".join(faults)

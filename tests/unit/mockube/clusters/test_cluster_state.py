"""The state of a cluster, by its record and its lock."""

import asyncio

import pytest
from msgspec.structs import replace

from mockube.clusters.named_cluster import (
    ClusterLocked,
    ClusterState,
    find_cluster,
    hold_lock,
    inspect_cluster,
    read_record,
    running_cluster,
    write_record,
)
from mockube.component_base.clock import SteppedClock
from mockube.failure import Missing
from tests.support.event_loop import until
from tests.support.processes.clusters import ready, starting


def ready_record():
    return ready("https://x")


def record_of_another_process():
    return replace(ready_record(), pid=1)


@pytest.mark.parametrize(
    ("written", "held", "state"),
    [
        pytest.param(None, False, ClusterState.STOPPED, id="no record, not locked"),
        pytest.param(None, True, ClusterState.STARTING, id="no record, locked"),
        pytest.param(starting, True, ClusterState.STARTING, id="starting record, locked"),
        pytest.param(ready_record, True, ClusterState.RUNNING, id="ready record, locked"),
        pytest.param(
            record_of_another_process,
            True,
            ClusterState.STARTING,
            id="record of another process, locked",
        ),
        pytest.param(ready_record, False, ClusterState.DEAD, id="ready record, not locked"),
    ],
)
async def test_state_follows_record_and_lock(folder, written, held, state):
    if written:
        write_record(folder, written())
    if held:
        async with hold_lock(folder, SteppedClock()):
            assert inspect_cluster(folder).state is state
    else:
        assert inspect_cluster(folder).state is state


async def test_cluster_lock_is_exclusive_and_released(folder):
    clock = SteppedClock()
    async with hold_lock(folder, clock):
        second = asyncio.create_task(_hold(folder, clock))
        while not second.done():
            await until(lambda: second.done() or clock.next_due() is not None)
            clock.advance(1)
        with pytest.raises(ClusterLocked, match='"one" is already running'):
            await second
    await _hold(folder, clock)


async def _hold(folder, clock):
    async with hold_lock(folder, clock):
        pass


def test_invalid_record_is_ignored(folder):
    folder.record.write_text("{")
    assert read_record(folder.record) is None


def test_missing_cluster_is_reported_with_command_to_start_it(environment, folder):
    with pytest.raises(Missing, match=r'there is no cluster "two": choose with --name: one \(stopped\)'):
        find_cluster("two", environment)
    with pytest.raises(Missing, match='"one" is not running: `mockube up --name=one` starts it'):
        running_cluster("one", environment)


async def test_running_cluster_is_found_with_its_record(environment, folder):
    write_record(folder, ready_record())
    async with hold_lock(folder, SteppedClock()):
        assert running_cluster("one", environment) == (folder, ready_record())

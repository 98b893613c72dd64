"""The start and the end of containers, and what is reported of them."""

import asyncio

import pytest

from mockube.container_runtime.runtime import ContainerRuntime
from tests.support.container_runtimes import running_machine

WAITS = "while read line; do echo got $line; done"


async def test_runtime_implements_contract(machine):
    assert isinstance(machine.runtime, ContainerRuntime)


async def test_container_has_a_state_before_its_first_run(machine):
    pod = machine.pod(WAITS)
    assert machine.runtime.runs(pod, "c")
    assert not machine.runtime.runs(pod, "other")
    state = machine.state(pod)
    assert (state.restarts, state.started, state.exit, state.is_alive) == (-1, None, None, False)


async def test_started_container_is_alive_and_reported(machine):
    pod = machine.pod(WAITS)
    await machine.start(pod)
    state = machine.state(pod)
    assert (state.restarts, state.exit, state.is_alive) == (0, None, True)
    assert machine.changes
    assert machine.runtime.may_change(pod)


async def test_second_start_of_the_same_run_does_nothing(machine):
    pod = machine.pod(WAITS)
    await machine.start(pod)
    before = machine.state(pod)
    machine.runtime.start_container(pod, "c", 0)
    assert machine.state(pod) == before


async def test_end_of_the_command_is_the_exit_of_the_run(machine):
    pod = machine.pod("exit 3")
    machine.runtime.start_container(pod, "c", 0)
    await machine.until_exit(pod)
    state = machine.state(pod)
    assert (state.exit.code, state.is_ready, state.is_alive) == (3, False, False)
    assert state.exit.at >= state.started


async def test_later_run_follows_an_ended_one(machine):
    pod = machine.pod("exit 3")
    machine.runtime.start_container(pod, "c", 0)
    await machine.until_exit(pod)
    machine.runtime.start_container(pod, "c", 1)
    await machine.until(pod, lambda state: state.restarts == 1 and state.exit)


async def test_stopped_container_ends(machine):
    pod = machine.pod(WAITS)
    await machine.start(pod)
    machine.runtime.stop_container(pod, "c", 1.0)
    assert machine.state(pod).is_stopping
    await machine.until_exit(pod)
    assert machine.state(pod).exit.code != 0


async def test_stop_of_a_container_that_never_ran_does_nothing(machine):
    pod = machine.pod(WAITS)
    machine.runtime.stop_container(pod, "c", 1.0)
    assert machine.state(pod).restarts == -1


async def test_removed_pod_leaves_nothing(machine):
    pod = machine.pod(WAITS)
    await machine.start(pod)
    machine.runtime.remove_pod("uid-1")
    machine.runtime.remove_pod("other")
    assert machine.state(pod).restarts == -1


async def test_pods_of_the_same_name_are_different(machine):
    pod, other = machine.pod(WAITS), machine.pod(WAITS, uid="uid-2")
    await machine.start(pod)
    assert machine.state(other).restarts == -1


@pytest.mark.parametrize("name", ["simulated", "process", "kwok"])
async def test_end_of_the_runtime_ends_its_containers(name):
    async with running_machine(name) as ending:
        pod = ending.pod(WAITS)
        await ending.start(pod)
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert [name for name in names if "container c" in name] == []

"""Output, input, logs and ports of containers."""

import asyncio

import pytest

from mockube.container_runtime.runs import ContainerNotFound, run_of
from mockube.container_runtime.runtime import RuntimeProblem
from tests.support.container_runtimes import ClientStreams, lines_of

ECHOES = "while read line; do echo got $line; done"


async def test_attached_client_sends_input_and_receives_output(machine):
    pod = await machine.start(machine.pod(ECHOES, stdinOnce=True))
    streams = ClientStreams(b"one\ntwo\n", has_input=True)
    async with machine.runtime.attach(pod, "c", has_terminal=False) as attachment:
        await asyncio.gather(attachment(streams), streams.send_input())
    assert streams.received[1] == b"got one\ngot two\n"


async def test_client_that_leaves_does_not_end_the_container(machine):
    pod = await machine.start(machine.pod(ECHOES))
    streams = ClientStreams(b"one\n", has_input=True)
    async with machine.runtime.attach(pod, "c", has_terminal=False) as attachment:
        work = asyncio.create_task(attachment(streams))
        await streams.send_input()
        await streams.until(b"got one\n")
        streams.departure.set()
        await work
    assert machine.state(pod).is_alive


async def test_attach_to_an_ended_container_is_refused(machine):
    pod = machine.pod("exit 0")
    machine.runtime.start_container(pod, "c", 0)
    ended = await machine.until_exit(pod)
    with pytest.raises(ContainerNotFound, match=r'container not found \("c"\)'):
        async with machine.runtime.attach(ended, "c", has_terminal=False):
            pass


async def test_log_has_the_lines_of_both_streams(machine):
    pod = machine.pod("echo out; echo err >&2")
    machine.runtime.start_container(pod, "c", 0)
    ended = await machine.until_exit(pod)
    assert sorted(await lines_of(machine, ended, run_of(ended, "c"))) == [(1, b"out\n"), (2, b"err\n")]


async def test_log_of_the_previous_run_is_retained(machine):
    pod = machine.pod("echo once")
    machine.runtime.start_container(pod, "c", 0)
    first = run_of(await machine.until_exit(pod), "c")
    machine.runtime.start_container(pod, "c", 1)
    ended = await machine.until(pod, lambda state: state.restarts == 1 and state.exit)
    assert await lines_of(machine, ended, first) == [(1, b"once\n")]


async def test_port_of_an_ended_container_is_closed(machine):
    pod = machine.pod("exit 0", ports=[{"containerPort": 8080}])
    machine.runtime.start_container(pod, "c", 0)
    ended = await machine.until_exit(pod)
    assert machine.runtime.listener(ended, 8080) is None
    with pytest.raises(RuntimeProblem, match="error forwarding port 8080 to pod uid-1") as refused:
        await machine.runtime.port_forward(ended, 8080)
    assert str(refused.value).endswith("dial tcp4 127.0.0.1:8080: connect: connection refused")

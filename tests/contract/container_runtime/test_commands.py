"""Commands in containers: of clients, and of probes and hooks."""

from math import inf

import pytest

from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.runtime import CommandFailed, ExecRequest
from tests.support.container_runtimes import ClientStreams

WAITS = "while read line; do echo got $line; done"


def request(*command, **fields):
    return ExecRequest(command=list(command), **fields)


async def test_command_has_output_and_exit_code(machine):
    pod = await machine.start(machine.pod(WAITS))
    execute = await machine.runtime.exec(pod, "c", request("sh", "-c", "echo out; echo err >&2; exit 4"))
    streams = ClientStreams()
    assert await execute(streams) == 4
    assert streams.received == {1: b"out\n", 2: b"err\n"}


async def test_command_reads_input_to_its_end(machine):
    pod = await machine.start(machine.pod(WAITS))
    execute = await machine.runtime.exec(pod, "c", request("cat", has_input=True))
    streams = ClientStreams(b"one\ntwo\n", has_input=True)
    await streams.send_input()
    assert await execute(streams) == 0
    assert streams.received[1] == b"one\ntwo\n"


async def test_command_has_the_environment_of_the_container(machine):
    pod = await machine.start(machine.pod(WAITS, env=[{"name": "COLOR", "value": "blue"}]))
    execute = await machine.runtime.exec(pod, "c", request("sh", "-c", "echo $COLOR"))
    streams = ClientStreams()
    await execute(streams)
    assert streams.received[1] == b"blue\n"


async def test_output_at_a_terminal_is_one_stream_with_its_line_ends(machine):
    pod = await machine.start(machine.pod(WAITS))
    execute = await machine.runtime.exec(
        pod, "c", request("sh", "-c", "echo out; echo err >&2", has_terminal=True)
    )
    streams = ClientStreams()
    await streams.sizes.end()
    await execute(streams)
    assert streams.received == {1: b"out\r\nerr\r\n"}


async def test_command_that_does_not_exist_fails(machine):
    pod = await machine.start(machine.pod(WAITS))
    execute = await machine.runtime.exec(pod, "c", request("no-such-program"))
    with pytest.raises(CommandFailed, match=r'"no-such-program": executable file not found in \$PATH'):
        await execute(ClientStreams())


async def test_command_in_an_ended_container_is_refused(machine):
    pod = machine.pod("exit 0")
    machine.runtime.start_container(pod, "c", 0)
    ended = await machine.until_exit(pod)
    with pytest.raises(ContainerNotFound, match=r'container not found \("c"\)'):
        await machine.runtime.exec(ended, "c", request("ls"))


async def test_result_of_a_probe_has_output_and_exit_code(machine):
    pod = await machine.start(machine.pod(WAITS))
    result = await machine.runtime.exec_sync(pod, "c", ["sh", "-c", "echo out; exit 4"], 10.0)
    assert (result.exit_code, result.output) == (4, "out\n")
    assert result.seconds < inf


async def test_command_of_a_probe_beyond_its_time_lasts_for_ever(machine):
    pod = await machine.start(machine.pod(WAITS))
    result = await machine.runtime.exec_sync(pod, "c", ["sleep", "100"], 0.05)
    assert result.seconds == inf

"""Commands of `crictl exec`: what a program fetches of them, and when they wait for it."""

import asyncio

import pytest

from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.runtime import CommandFailed, RuntimeProblem
from mockube.kubelet.node_machine import exec_sessions
from mockube.kubelet.node_machine.exec_sessions import ExecSessions
from tests.support.event_loop import yield_to_loop


def answer(*output, needs_input=False, **end):
    return {"output": [*output], "needs_input": needs_input, **end}


async def echo(streams):
    """Write each chunk of the input, until its end."""
    while chunk := await streams.stdin.read(100):
        await streams.write(1, chunk)
    await streams.write(2, b"end")
    return 3


async def test_command_says_when_it_waits_for_input_and_returns_its_code():
    sessions = ExecSessions()
    number = await sessions.begin(echo, has_input=True)
    assert await sessions.next(number) == answer(needs_input=True)
    await sessions.write(number, "a\udcff")
    assert await sessions.next(number) == answer((1, "a\udcff"), needs_input=True)
    await sessions.write(number, "")
    assert await sessions.next(number) == answer((2, "end"), code=3, message="")
    with pytest.raises(ServiceFailed, match="the command has ended"):
        await sessions.next(number)
    with pytest.raises(ServiceFailed):
        await sessions.write(number, "b")


async def test_command_without_input_ignores_what_is_written():
    has_ended = asyncio.Event()

    async def command(streams):
        assert streams.stdin is None
        await has_ended.wait()
        return 0

    sessions = ExecSessions()
    number = await sessions.begin(command, has_input=False)
    await sessions.write(number, "a")
    fetched = asyncio.create_task(sessions.next(number))
    await yield_to_loop(3)
    assert not fetched.done()
    has_ended.set()
    assert await fetched == answer(code=0, message="")


@pytest.mark.parametrize("error", [CommandFailed("no"), ContainerNotFound("no"), RuntimeProblem("no")])
async def test_command_that_fails_has_its_message(error):
    async def command(_):
        raise error

    sessions = ExecSessions()
    number = await sessions.begin(command, has_input=True)
    assert await sessions.next(number) == answer(code=1, message=str(error))


async def test_command_waits_when_too_much_of_its_output_is_not_fetched():
    progress = []

    async def command(streams):
        for part in (b"x" * exec_sessions.MAX_UNREAD, b"y", b"z"):
            await streams.write(1, part)
            progress.append(part[:1])
        return 0

    sessions = ExecSessions()
    number = await sessions.begin(command, has_input=False)
    await yield_to_loop(3)
    assert progress == [b"x", b"y"]
    assert len((await sessions.next(number))["output"]) == 2
    await yield_to_loop(3)
    assert progress == [b"x", b"y", b"z"]
    assert await sessions.next(number) == answer((1, "z"), code=0, message="")


async def test_oldest_command_ends_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(exec_sessions, "MAX_SESSIONS", 2)
    sessions = ExecSessions()
    first, second, third = [await sessions.begin(echo, has_input=True) for _ in range(3)]
    with pytest.raises(ServiceFailed):
        await sessions.next(first)
    for number in (second, third):
        assert await sessions.next(number) == answer(needs_input=True)
        await sessions.write(number, "")
        await yield_to_loop(3)
        assert (await sessions.next(number))["code"] == 3
    assert not sessions._sessions

"""Container processes end with the process that started them, also if it is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mockube.container_runtime.process.command import CommandSpec, Identity
from mockube.container_runtime.process.local_process import GroupWatch, start_process
from tests.support.event_loop import yield_to_loop
from tests.support.process_pods import assert_gone

STARTER = """
import asyncio, os, sys
from pathlib import Path
from mockube.container_runtime.process.command import CommandSpec, Identity
from mockube.container_runtime.process.local_process import GroupWatch, read_chunk, start_process

SCRIPT = "import os, time; child = os.fork(); print(os.getpid(), flush=True); time.sleep(1000)"

async def main():
    watch = GroupWatch()
    await watch.begin()
    argv = [sys.executable, "-I", "-S", "-c", SCRIPT]
    spec = CommandSpec(argv=argv, environment={}, directory=Path("/"), identity=Identity())
    process = await start_process(spec)
    watch.add(process.pid)
    said = b""
    while said.count(b"\\n") < 2:
        said += await read_chunk(process.outputs[1])
    print(said.decode().replace("\\n", " "), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_processes_die_with_killed_kubelet():
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) as starter:
        first, second = starter.stdout.readline().split()
        assert {Path(f"/proc/{one}").exists() for one in (first, second)} == {True}
        os.kill(starter.pid, signal.SIGKILL)
    assert_gone(int(first))
    assert_gone(int(second))


def children():
    return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def cancelled(work):
    """Begin something, cancel it while it starts processes, and return these."""
    before = children()
    task = asyncio.create_task(work)
    while not (started := children() - before):
        await yield_to_loop()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return started


async def test_watch_that_is_cancelled_while_it_begins_can_be_ended():
    watch = GroupWatch()
    started = await cancelled(watch.begin())
    await watch.end()
    for pid in started:
        assert_gone(pid)
    assert len(started) == 1


async def test_process_that_is_cancelled_while_it_starts_is_killed():
    spec = CommandSpec(
        argv=[sys.executable, "-c", "import time; time.sleep(1000)"],
        environment={},
        directory=Path("/"),
        identity=Identity(),
    )
    (pid,) = await cancelled(start_process(spec))
    assert pid not in children()  # its exit was awaited

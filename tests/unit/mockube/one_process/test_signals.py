"""The signals that stop a fork."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio
from mockube.one_process.forks import _call_at_signals

async def main():
    ended = asyncio.Event()
    _call_at_signals(lambda: print("stop", flush=True), ended.set)
    print("ready", flush=True)
    await ended.wait()
    print("end", flush=True)

asyncio.run(main())
"""


@pytest.mark.thorough
@pytest.mark.parametrize("numbers", [(signal.SIGTERM, signal.SIGTERM, signal.SIGINT), (signal.SIGINT,) * 2])
def test_interrupt_after_another_signal_ends_a_fork_at_once(numbers):
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
            assert process.stdout.readline() == "stop\n", number
        assert process.stdout.readline() == "end\n"
    assert process.returncode == 0

import asyncio
import signal

import pytest

from mockube.cli.interruption import interrupted_by_sigterm


@pytest.fixture(autouse=True)
def _ignored_sigint():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_sigterm_interrupts_and_handlers_come_back():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interrupted_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_tasks_clean_up():
    steps = []

    async def work():
        try:
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt), interrupted_by_sigterm():
        asyncio.run(work())
    assert steps == ["cleaned up"]

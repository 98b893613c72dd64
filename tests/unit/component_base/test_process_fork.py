"""Children of a process with a running event loop."""

import asyncio
import os
import sys

import pytest

from mockube.component_base.process_fork import reap_at_end
from tests.support.event_loop import WAIT_TIMEOUT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


def start_child():
    return os.posix_spawn("/bin/true", ["true"], os.environ)


def refuse(_pid):
    raise OSError("no descriptor is free")


@pytest.mark.parametrize("has_descriptors", [True, False])
async def test_end_of_a_child_is_noted(monkeypatch, has_descriptors):
    if not has_descriptors:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    pid, ended = start_child(), asyncio.Event()
    reap_at_end(pid, ended.set)
    async with asyncio.timeout(WAIT_TIMEOUT):
        await ended.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

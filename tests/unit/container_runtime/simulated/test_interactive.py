"""Attach to a container run that has ended is refused."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.output import OUTPUT_END
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.simulated.interactive import InteractiveRun


def test_attach_to_ended_run_is_refused():
    async def outcome():
        run = InteractiveRun({"name": "c", "stdin": True}, 0, SteppedClock(), lambda: None)
        with run.listen() as output:
            await run.write(1, b"hello\n")
            run.end(0)
            assert [await output.get(), await output.get()] == [(1, b"hello\n"), OUTPUT_END]
        with run.listen():
            pass

    with pytest.raises(ContainerNotFound) as refused:
        asyncio.run(outcome())
    assert str(refused.value) == 'container not found ("c")'

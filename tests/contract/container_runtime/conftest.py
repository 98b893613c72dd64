"""Each run-time in turn, with nothing in it."""

import pytest

from tests.support.container_runtimes import running_machine


@pytest.fixture(params=["simulated", pytest.param("process", marks=pytest.mark.thorough), "kwok"])
async def machine(request):
    async with running_machine(request.param) as machine:
        yield machine

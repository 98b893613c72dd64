"""A server without HTTP, for the tests of writes and of admission."""

import pytest

from tests.support.server.memory_api import running_api


@pytest.fixture
async def api():
    """A `MemoryApi` in which every user may do everything; `running_api` makes one with other flags or rights."""
    async with running_api() as api:
        yield api

"""How mockube's own commands speak to an API server, whosesoever it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from apimachinery.clock import Clock
from controller_manager.runtime.client import Client
from controller_manager.runtime.kubeconfig import Access

AGENT: Final = "mockube"


@asynccontextmanager
async def speaking(access: Access, clock: Clock) -> AsyncIterator[Client]:
    """A client, whose connections are closed at the end."""
    from controller_manager.runtime.connect import Connection, connected  # noqa: PLC0415 - HTTP is for who speaks it

    async with connected(Connection(access=access, clock=clock, agent=AGENT)) as client:
        yield client

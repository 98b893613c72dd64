"""The connection of mockube's commands to any API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.kubeconfig import Access

AGENT: Final = "mockube"


@asynccontextmanager
async def open_client(access: Access, clock: Clock) -> AsyncIterator[Client]:
    """A client, whose connections are closed at the end."""
    from mockube.controller_manager.client.connect import Connection, connect  # noqa: PLC0415 - HTTP is imported only if it is used

    async with connect(Connection(access=access, clock=clock, agent=AGENT)) as client:
        yield client

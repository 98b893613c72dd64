"""The client with which mockube's commands and `connect` send requests to any API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock

AGENT: Final = "mockube"
"""The User-Agent, which is also the field manager."""


@asynccontextmanager
async def open_client(access: Access, clock: Clock) -> AsyncIterator[Client]:
    """Yield a client, whose connections are closed at the end of the block."""
    from mockube.client.connect import ClientOptions, connect  # noqa: PLC0415 - HTTP is imported only if it is used

    async with connect(ClientOptions(access=access, clock=clock, agent=AGENT)) as client:
        yield client

"""The one place that makes a client: transport, credentials, limits and who controllers are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from apimachinery.clock import Clock
from controller_manager.runtime.client import Client
from controller_manager.runtime.client_metrics import ClientMetrics
from controller_manager.runtime.credentials import Credential, FileToken, FixedToken
from controller_manager.runtime.identities import SharedIdentity
from controller_manager.runtime.kubeconfig import Access
from controller_manager.runtime.sender import Sender
from controller_manager.runtime.token_bucket import Rate, TokenBucket
from controller_manager.runtime.transport import AiohttpTransport

AGENT: Final = "kube-controller-manager"
"""Field ownership goes by the User-Agent, so that objects look as upstream's manager would have left them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    access: Access
    clock: Clock
    agent: str = AGENT
    rate: Rate | None = None
    """`--kube-api-qps` and `--kube-api-burst`, of each controller by itself; None has no limit."""
    metrics: ClientMetrics = field(default_factory=ClientMetrics)


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[Client]:
    """A client, whose connections are closed at the end."""
    transport = AiohttpTransport(connection.access)
    try:
        sender = Sender(
            transport=transport,
            credential=_credential(connection.access, connection.clock),
            agent=connection.agent,
            limit=TokenBucket(connection.rate, connection.clock) if connection.rate else None,
            clock=connection.clock,
            metrics=connection.metrics,
        )
        yield Client(sender, SharedIdentity(sender=sender, rate=connection.rate))
    finally:
        await transport.close()


def _credential(access: Access, clock: Clock) -> Credential:
    return FileToken(access.token_file, clock) if access.token_file else FixedToken(access.token)

"""The one place that makes a client: transport, credentials, limits and the User-Agent."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.flowcontrol import Rate, TokenBucket
from mockube.controller_manager.client.kubeconfig import Access
from mockube.controller_manager.client.sender import Credential, FileToken, FixedToken, Sender
from mockube.controller_manager.client.service_accounts import (
    OwnIdentities,
    ServiceAccountToken,
    SharedIdentity,
)
from mockube.controller_manager.client.transport import BoundedTransport, FencedTransport, HttpTransport
from mockube.controller_manager.client.wire import Transport
from mockube.controller_manager.metrics.client import ClientMetrics

AGENT: Final = "kube-controller-manager"
"""The User-Agent is the field manager, so that managed fields are as with upstream's manager."""


class Connection(Struct, frozen=True, kw_only=True):
    access: Access
    clock: Clock
    agent: str = AGENT
    rate: Rate | None = None
    """`--kube-api-qps` and `--kube-api-burst`, of each controller by itself; None has no limit."""
    use_service_account_credentials: bool = False
    may_write: Callable[[], bool] | None = None
    """Called before each write, which is not sent if it returns false; None allows every write."""
    transport: Callable[[Access], Transport] = HttpTransport
    metrics: ClientMetrics = field(default_factory=ClientMetrics)


@asynccontextmanager
async def connect(connection: Connection) -> AsyncIterator[Client]:
    """A client, whose connections are closed at the end."""
    async with AsyncExitStack() as stack:
        access, rate = connection.access, connection.rate
        sender = _sender(
            connection, _transport(connection, access, stack), _credential(access, connection.clock)
        )
        client = Client(sender, SharedIdentity(sender=sender, rate=rate))
        if connection.use_service_account_credentials:
            anonymous = _sender(connection, _transport(connection, access.anonymous(), stack), FixedToken())
            credential = partial(ServiceAccountToken, client, connection.clock)
            client = Client(sender, OwnIdentities(anonymous=anonymous, credential=credential, rate=rate))
        yield client


def _transport(connection: Connection, access: Access, stack: AsyncExitStack) -> Transport:
    transport = connection.transport(access)
    stack.push_async_callback(transport.close)
    if connection.may_write is not None:
        transport = FencedTransport(transport, connection.may_write)
    return BoundedTransport(transport)


def _sender(connection: Connection, transport: Transport, credential: Credential) -> Sender:
    return Sender(
        transport=transport,
        credential=credential,
        agent=connection.agent,
        limit=TokenBucket(connection.rate, connection.clock) if connection.rate else None,
        clock=connection.clock,
        metrics=connection.metrics,
    )


def _credential(access: Access, clock: Clock) -> Credential:
    return FileToken(access.token_file, clock) if access.token_file else FixedToken(access.token)

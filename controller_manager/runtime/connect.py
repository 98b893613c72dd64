"""The one place that makes a client: transport, credentials, limits and who controllers are."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from apimachinery.clock import Clock
from controller_manager.runtime.bounded import Bounded
from controller_manager.runtime.client import Client
from controller_manager.runtime.client_metrics import ClientMetrics
from controller_manager.runtime.credentials import Credential, FileToken, FixedToken
from controller_manager.runtime.fence import Fenced
from controller_manager.runtime.identities import OwnIdentities, SharedIdentity
from controller_manager.runtime.kubeconfig import Access
from controller_manager.runtime.sender import Sender
from controller_manager.runtime.service_accounts import ServiceAccountToken
from controller_manager.runtime.token_bucket import Rate, TokenBucket
from controller_manager.runtime.transport import AiohttpTransport
from controller_manager.runtime.wire import Transport

AGENT: Final = "kube-controller-manager"
"""Field ownership goes by the User-Agent, so that objects look as upstream's manager would have left them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    access: Access
    clock: Clock
    agent: str = AGENT
    rate: Rate | None = None
    """`--kube-api-qps` and `--kube-api-burst`, of each controller by itself; None has no limit."""
    use_service_account_credentials: bool = False
    may_write: Callable[[], bool] | None = None
    """Asked before each write, which is not sent if the answer is no; None is always yes."""
    transport: Callable[[Access], Transport] = AiohttpTransport
    metrics: ClientMetrics = field(default_factory=ClientMetrics)


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[Client]:
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
        transport = Fenced(transport, connection.may_write)
    return Bounded(transport)


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

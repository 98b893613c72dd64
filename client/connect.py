"""Create clients, with their transport, credentials, rate limits and User-Agent."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from typing import Final

from msgspec import Struct, field

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from .flowcontrol import Rate, TokenBucket
from .kubeconfig import Access
from .metrics.requests import ClientMetrics
from .sender import Credential, FileToken, FixedToken, Sender
from .service_accounts import OwnIdentities, ServiceAccountToken, SharedIdentity
from .transport import BoundedTransport, FencedTransport, HttpTransport
from .verbs import Client
from .wire import Transport

AGENT: Final = "kube-controller-manager"
"""The default User-Agent: the server uses it as the field manager, so it is upstream's."""


class ClientOptions(Struct, frozen=True, kw_only=True):
    """The settings of a client."""

    access: Access
    clock: Clock
    agent: str = AGENT
    rate: Rate | None = None
    """The rate limit of each controller, as of `--kube-api-qps` and `--kube-api-burst`; None for no limit."""
    use_service_account_credentials: bool = False
    may_write: Callable[[], bool] | None = None
    """Returns whether a write may be sent; called before each. None allows all writes."""
    wait_until_renewed: Callable[[], Awaitable[bool]] | None = None
    """Waits, before a write that may not be sent now, for a renewal of the lease; None does not wait."""
    transport: Callable[[Access], Transport] = HttpTransport
    metrics: ClientMetrics = field(default_factory=lambda: ClientMetrics(MetricsRegistry()))


@asynccontextmanager
async def connect(options: ClientOptions) -> AsyncIterator[Client]:
    """Yield a client; its connections are closed at the end."""
    async with AsyncExitStack() as stack:
        access, rate = options.access, options.rate
        sender = _sender(options, _transport(options, access, stack), _credential(access, options.clock))
        transports = _ForeignTransports(options, stack)
        client = Client(sender, SharedIdentity(sender=sender, rate=rate), transports=transports)
        if options.use_service_account_credentials:
            anonymous_sender = _sender(options, transports.anonymous(), FixedToken())
            credential = partial(ServiceAccountToken, client, options.clock)
            identities = OwnIdentities(anonymous=anonymous_sender, credential=credential, rate=rate)
            client = Client(sender, identities, transports=transports)
        yield client


class _ForeignTransports:
    def __init__(self, options: ClientOptions, stack: AsyncExitStack) -> None:
        self._options = options
        self.anonymous = cache(partial(_transport, options, options.access.anonymous(), stack))

    def with_certificate(self, certificate: bytes, key: bytes) -> Transport:
        """Return a transport over a socket, also in a process with the server: a certificate belongs to TLS."""
        return HttpTransport(self._options.access.with_certificate(certificate, key))


def _transport(options: ClientOptions, access: Access, stack: AsyncExitStack) -> Transport:
    transport = options.transport(access)
    stack.push_async_callback(transport.close)
    if options.may_write is not None:
        waits = () if options.wait_until_renewed is None else (options.wait_until_renewed,)
        transport = FencedTransport(transport, options.may_write, *waits)
    return BoundedTransport(transport)


def _sender(options: ClientOptions, transport: Transport, credential: Credential) -> Sender:
    return Sender(
        transport=transport,
        credential=credential,
        agent=options.agent,
        limit=TokenBucket(options.rate, options.clock) if options.rate else None,
        clock=options.clock,
        metrics=options.metrics,
    )


def _credential(access: Access, clock: Clock) -> Credential:
    return FileToken(access.token_file, clock) if access.token_file else FixedToken(access.token)

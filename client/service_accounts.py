"""Service accounts of controllers: their tokens, and the senders with their credentials."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock

from .flowcontrol import Rate, TokenBucket
from .kinds import NAMESPACES, SERVICE_ACCOUNTS
from .resources import Key
from .sender import Credential, Sender
from .verbs import AnyResource, Client
from .wire import NoResponse, Unreachable

LOG: Final = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
EXPIRATION_SECONDS: Final = 3600
RENEWAL_FRACTION: Final = 0.8
"""The fraction of a token's lifetime after which it is renewed."""
RETRY_SECONDS: Final = 10.0
"""The interval of attempts to renew a token that is still valid."""


class ServiceAccountToken:
    """The `Credential` of a service account, by TokenRequests. Creates the account if it does not exist."""

    def __init__(self, client: Client, clock: Clock, name: str) -> None:
        self._client = client
        self._key = Key(NAMESPACE, name)
        self._clock = clock
        self._renewal_lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0
        self._expires_at = 0.0

    async def token(self) -> str:
        if not self._is_valid():
            async with self._renewal_lock:
                if not self._is_valid():
                    await self._renew()
        return self._token

    def forget(self, token: str) -> bool:
        """Drop the token: the account may have been deleted and created again, which needs a new token."""
        if token == self._token:
            self._token = ""
        return True

    def _is_valid(self) -> bool:
        return bool(self._token) and self._clock.monotonic() < self._renew_at

    async def _renew(self) -> None:
        requested_at = self._clock.monotonic()
        try:
            token, seconds = await self._token_of_account()
        except (ApiError, NoResponse) as error:
            if not self._token or requested_at >= self._expires_at:
                raise Unreachable(f"no token for service account {self._key}: {error}") from error
            self._renew_at = requested_at + RETRY_SECONDS
            return
        self._token = token
        self._renew_at = requested_at + seconds * RENEWAL_FRACTION
        self._expires_at = requested_at + seconds

    async def _token_of_account(self) -> tuple[str, float]:
        """Return a token and its lifetime in seconds. Creates the account if it does not exist."""
        try:
            return await self._request_token()
        except NotFound:
            await _create_account(self._client, self._key)
            return await self._request_token()

    async def _request_token(self) -> tuple[str, float]:
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": EXPIRATION_SECONDS},
        }
        response = await self._client.create(
            SERVICE_ACCOUNTS, token_request, key=self._key, subresource="token"
        )
        return response["status"]["token"], float(response["spec"]["expirationSeconds"])


async def create_missing_accounts(client: Client, clock: Clock, names: Collection[str]) -> None:
    """Create the service accounts that do not exist, as upstream when a controller starts; retry until all exist."""
    while True:
        try:
            accounts = await client.list(SERVICE_ACCOUNTS, NAMESPACE)
            for name in sorted({*names}.difference(map(meta.name, accounts.items))):
                await _create_account(client, Key(NAMESPACE, name))
        except (ApiError, NoResponse) as error:
            LOG.warning("not all service accounts of controllers were created: %s", error)
            await clock.sleep(RETRY_SECONDS)
        else:
            return


async def _create_account(client: Client, key: Key) -> None:
    """Create the account, and its namespace only if that is missing: upstream's role may not create namespaces."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": key._asdict()}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}}
    try:
        await _ensure(client, SERVICE_ACCOUNTS, account)
    except NotFound:
        await _ensure(client, NAMESPACES, namespace)
        await _ensure(client, SERVICE_ACCOUNTS, account)


async def _ensure(client: Client, resource: AnyResource, body: ReadOnlyTree) -> None:
    with suppress(AlreadyExists):
        await client.create(resource, body)


class SharedIdentity(Struct, frozen=True, kw_only=True):
    """Senders that all use the credentials of the process, with the controller's name in the User-Agent."""

    sender: Sender
    rate: Rate | None
    need_accounts: ClassVar[bool] = False

    def of(self, service_account: str) -> Sender:
        return _named_sender(self.sender, service_account, self.rate)


class OwnIdentities(Struct, frozen=True, kw_only=True):
    """Senders that authenticate as the service account of the controller."""

    anonymous: Sender
    """A sender without credentials: a client certificate would take precedence over the token."""
    credential: Callable[[str], Credential]
    rate: Rate | None
    need_accounts: ClassVar[bool] = True

    def of(self, service_account: str) -> Sender:
        sender = replace(self.anonymous, credential=self.credential(service_account))
        return _named_sender(sender, f"system:serviceaccount:{NAMESPACE}:{service_account}", self.rate)


def _named_sender(sender: Sender, name: str, rate: Rate | None) -> Sender:
    """Return a sender with this name in the User-Agent and a rate limit of its own, as upstream."""
    limit = None if rate is None else TokenBucket(rate, sender.clock)
    return replace(sender, agent=f"{sender.agent}/{name}", limit=limit)

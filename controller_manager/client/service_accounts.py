"""Requests as a service account: its tokens, and a client for each controller with the credentials of its account."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import AlreadyExists, ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import AnyResource, Client
from mockube.controller_manager.client.flowcontrol import Rate, TokenBucket
from mockube.controller_manager.client.kinds import NAMESPACES, SERVICE_ACCOUNTS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.sender import Credential, Sender
from mockube.controller_manager.client.wire import NoAnswer, Unreachable

NAMESPACE: Final = "kube-system"
EXPIRATION_SECONDS: Final = 3600
RENEWAL_FRACTION: Final = 0.8
"""Of a token's life."""
TIMEOUT_SECONDS: Final = 10.0
"""Seconds between attempts to renew a token that still holds."""


class ServiceAccountToken:
    """A `Credential`."""

    def __init__(self, client: Client, clock: Clock, name: str) -> None:
        self._client = client
        self._key = Key(NAMESPACE, name)
        self._clock = clock
        self._renewing = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0
        self._ends_at = 0.0

    async def token(self) -> str:
        if not self._is_valid():
            async with self._renewing:
                if not self._is_valid():
                    await self._renew()
        return self._token

    def forget(self, token: str) -> bool:
        """Perhaps the account was deleted and made again."""
        if token == self._token:
            self._token = ""
        return True

    def _is_valid(self) -> bool:
        return bool(self._token) and self._clock.monotonic() < self._renew_at

    async def _renew(self) -> None:
        requested_at = self._clock.monotonic()
        try:
            token, seconds = await self._request()
        except (ApiError, NoAnswer) as error:
            if not self._token or requested_at >= self._ends_at:
                raise Unreachable(f"no token for service account {self._key}: {error}") from error
            self._renew_at = requested_at + TIMEOUT_SECONDS
            return
        self._token = token
        self._renew_at = requested_at + seconds * RENEWAL_FRACTION
        self._ends_at = requested_at + seconds

    async def _request(self) -> tuple[str, float]:
        """A token, and for how many seconds it holds."""
        try:
            return await self._issue()
        except NotFound:
            await self._make_account()
            return await self._issue()

    async def _issue(self) -> tuple[str, float]:
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": EXPIRATION_SECONDS},
        }
        issued = await self._client.create(
            SERVICE_ACCOUNTS, token_request, key=self._key, subresource="token"
        )
        return issued["status"]["token"], float(issued["spec"]["expirationSeconds"])

    async def _make_account(self) -> None:
        """And its namespace, but only where that is absent too: upstream's role for a manager allows no namespaces."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._key._asdict()}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._key.namespace}}
        try:
            await self._make(SERVICE_ACCOUNTS, account)
        except NotFound:
            await self._make(NAMESPACES, namespace)
            await self._make(SERVICE_ACCOUNTS, account)

    async def _make(self, resource: AnyResource, body: ReadOnlyTree) -> None:
        with suppress(AlreadyExists):
            await self._client.create(resource, body)


class SharedIdentity(Struct, frozen=True, kw_only=True):
    """Every controller uses the process' credentials, with its own name in the User-Agent."""

    sender: Sender
    rate: Rate | None

    def of(self, service_account: str) -> Sender:
        return _named_sender(self.sender, service_account, self.rate)


class OwnIdentities(Struct, frozen=True, kw_only=True):
    """Every controller authenticates as a service account with the controller's name."""

    anonymous: Sender
    """Shows nothing by itself: a certificate would count more than a token."""
    credential: Callable[[str], Credential]
    rate: Rate | None

    def of(self, service_account: str) -> Sender:
        sender = replace(self.anonymous, credential=self.credential(service_account))
        return _named_sender(sender, f"system:serviceaccount:{NAMESPACE}:{service_account}", self.rate)


def _named_sender(sender: Sender, name: str, rate: Rate | None) -> Sender:
    """As upstream, each has a limit of its own."""
    limit = None if rate is None else TokenBucket(rate, sender.clock)
    return replace(sender, agent=f"{sender.agent}/{name}", limit=limit)

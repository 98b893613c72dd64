"""Credentials of a controller's own: a service account in kube-system, and a token for it that is renewed in time.

The account is made where it is absent. What goes wrong here is never taken for the answer to what a controller asked:
without a token the server is unreachable.
"""

import asyncio
from contextlib import suppress
from typing import Final

from apimachinery.clock import Clock
from apimachinery.status import AlreadyExists, ApiError, NotFound
from controller_manager.kinds import NAMESPACES, SERVICE_ACCOUNTS
from controller_manager.runtime.client import AnyResource, Client
from controller_manager.runtime.resource import Key, Tree
from controller_manager.runtime.wire import NoAnswer, Unreachable

NAMESPACE: Final = "kube-system"
EXPIRATION_SECONDS: Final = 3600
RENEWED_AT: Final = 0.8
"""Of a token's life."""
PATIENCE: Final = 10.0
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
        if not self._holds():
            async with self._renewing:
                if not self._holds():
                    await self._renew()
        return self._token

    def forget(self, token: str) -> bool:
        """Perhaps the account was deleted and made again."""
        if token == self._token:
            self._token = ""
        return True

    def _holds(self) -> bool:
        return bool(self._token) and self._clock.monotonic() < self._renew_at

    async def _renew(self) -> None:
        asked = self._clock.monotonic()
        try:
            token, seconds = await self._request()
        except (ApiError, NoAnswer) as error:
            if not self._token or asked >= self._ends_at:
                raise Unreachable(f"no token for service account {self._key}: {error}") from error
            self._renew_at = asked + PATIENCE
            return
        self._token = token
        self._renew_at = asked + seconds * RENEWED_AT
        self._ends_at = asked + seconds

    async def _request(self) -> tuple[str, float]:
        """A token, and for how many seconds it holds."""
        try:
            return await self._issue()
        except NotFound:
            await self._make_account()
            return await self._issue()

    async def _issue(self) -> tuple[str, float]:
        wanted = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": EXPIRATION_SECONDS},
        }
        issued = await self._client.create(SERVICE_ACCOUNTS, wanted, key=self._key, subresource="token")
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

    async def _make(self, resource: AnyResource, body: Tree) -> None:
        with suppress(AlreadyExists):
            await self._client.create(resource, body)

"""Send requests to a cluster: choose the member, set the deadline and the token, and retry.

A request is retried within its deadline, if it certainly was not executed or may be executed twice. The
transport handles methods and bytes, not their meaning.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from mockube.etcd.errors import Closed, Interrupted, PermissionDenied, Timeout, Unavailable
from mockube.etcd.kv import Revision

from .clock import Clock, Deadline
from .errors import NotTrusted, TokenRejected
from .gateway import Gateway
from .requests import LOGIN, WATCH, Method, encode_login
from .watch_stream import WatchStream

T = TypeVar("T")

INITIAL_BACKOFF = 0.05
MAX_BACKOFF = 1.0
"""Seconds between two rounds over all members; each pause is twice the one before."""


class EtcdCredentials(Struct, frozen=True, kw_only=True):
    user: str
    password: str


class Transport:
    def __init__(
        self,
        gateways: Sequence[Gateway],
        *,
        credentials: EtcdCredentials | None,
        deadline: float,
        clock: Clock,
    ) -> None:
        self._gateways = gateways
        self._preferred = 0
        """The preferred member: the last that responded."""
        self._credentials = credentials
        self._token: str | None = None
        self._login = asyncio.Lock()
        self._deadline = deadline
        self._clock = clock
        self._closed = False

    async def call(self, method: Method[T], body: bytes) -> T:
        """Return the response, or raise the error of etcd or of the connection."""

        async def send(gateway: Gateway) -> T:
            return await gateway.call(method, body)

        return await self._with_token(send, repeatable=method.repeatable)

    async def open_watch(self, create: bytes) -> WatchStream:
        """Return a stream with a watch that etcd has confirmed."""

        async def open_on(gateway: Gateway) -> WatchStream:
            return await self._open_watch(gateway, create)

        return await self._with_token(open_on, repeatable=True)

    async def history_start(self, create: bytes) -> Revision:
        """Return the oldest readable revision, from the response to a watch that would start before it."""

        async def send(gateway: Gateway) -> Revision:
            watch = await self._open_watch(gateway, create)
            try:
                return (await watch.receive()).compact_revision
            finally:
                await watch.close()

        return await self._with_token(send, repeatable=True)

    def deprioritize(self, gateway: Gateway) -> None:
        """Try another member first from now on."""
        if self._gateways[self._preferred] is gateway:
            self._preferred = (self._preferred + 1) % len(self._gateways)

    async def close(self) -> None:
        self._closed = True
        for gateway in self._gateways:
            await gateway.close()

    async def _open_watch(self, gateway: Gateway, create: bytes) -> WatchStream:
        stream = await gateway.open_stream(WATCH, create)
        watch = WatchStream(gateway, stream, clock=self._clock, timeout=self._deadline)
        try:
            await watch.receive()
        except PermissionDenied as error:
            await watch.close()
            # Releases such as 3.5.1 also return this for an unknown token.
            raise TokenRejected(str(error)) from error
        except BaseException:
            await watch.close()
            raise
        return watch

    async def _with_token(self, request: Callable[[Gateway], Awaitable[T]], *, repeatable: bool) -> T:
        until = self._clock.monotonic() + self._deadline
        if self._credentials is None:
            return await self._try_members(request, repeatable=repeatable, until=until)
        if self._token is None:
            await self._renew_token(None, until)
        token = self._token
        try:
            return await self._try_members(request, repeatable=repeatable, until=until)
        except TokenRejected:
            await self._renew_token(token, until)
            return await self._try_members(request, repeatable=repeatable, until=until)

    async def _renew_token(self, stale: str | None, until: float) -> None:
        """Log in again because `stale` was refused; concurrent requests wait for the same token."""
        async with self._login:
            if self._token != stale:
                return
            assert self._credentials is not None
            body = encode_login(self._credentials.user, self._credentials.password)

            async def log_in(gateway: Gateway) -> str:
                return await gateway.call(LOGIN, body)

            self._token = await self._try_members(log_in, repeatable=LOGIN.repeatable, until=until)
            for gateway in self._gateways:
                gateway.token = self._token

    async def _try_members(
        self, request: Callable[[Gateway], Awaitable[T]], *, repeatable: bool, until: float
    ) -> T:
        """Send the request to one member after the other, as long as it may be repeated, until the deadline."""
        tries = 0
        while True:
            if self._closed:
                raise Closed("the store is closed")
            gateway = self._gateways[self._preferred]
            remaining = until - self._clock.monotonic()
            share = remaining / max(len(self._gateways) - tries, 1) if repeatable else remaining
            try:
                return await self._attempt(request, gateway, share)
            except (Unavailable, Interrupted, Timeout) as error:
                self.deprioritize(gateway)
                if error.outcome_unknown and not repeatable:
                    raise
                tries += 1
                if isinstance(error, NotTrusted) and tries >= len(self._gateways):
                    raise
                pause = _pause(tries, len(self._gateways))
                if self._clock.monotonic() + pause >= until:
                    raise
            if pause:
                await self._clock.sleep(pause)

    async def _attempt(
        self, request: Callable[[Gateway], Awaitable[T]], gateway: Gateway, seconds: float
    ) -> T:
        try:
            with Deadline(self._clock, seconds):
                return await request(gateway)
        except TimeoutError as error:
            raise Timeout(f"{gateway.endpoint}: no response in {seconds:.3g} s") from error


def _pause(tries: int, members: int) -> float:
    """Return the delay before the next try: 0 until each member was tried once in this round."""
    rounds, tried_members = divmod(tries, members)
    return 0.0 if tried_members else min(INITIAL_BACKOFF * 2 ** (rounds - 1), MAX_BACKOFF)

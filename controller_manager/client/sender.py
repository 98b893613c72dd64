"""Send one request with its credentials, rate limit and metrics, and retry where the server sends Retry-After."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.flowcontrol import TokenBucket
from mockube.controller_manager.client.wire import Answer, NoAnswer, Request, Stream, Transport, Unreachable
from mockube.controller_manager.metrics.client import ClientMetrics

REREAD_SECONDS: Final = 60.0


class Credential(Protocol):
    async def token(self) -> str:
        """The current bearer token; empty where there is none."""

    def forget(self, token: str) -> bool:
        """Drop a token that the server rejected; returns whether there may be another one."""


class FixedToken:
    """A constant token, or none."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    async def token(self) -> str:
        return self._token

    def forget(self, _: str) -> bool:
        return False


class FileToken:
    """A token in a file that another program renews."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._read = ""
        self._until = 0.0

    async def token(self) -> str:
        now = self._clock.monotonic()
        if not self._read or now >= self._until:
            self._read = self._read_file()
            self._until = now + REREAD_SECONDS
        return self._read

    def forget(self, token: str) -> bool:
        """The file may contain a newer token by now."""
        if token != self._read:
            return True
        self._until = 0.0
        return self._read_file() != token

    def _read_file(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            raise Unreachable(f"no token: {error}") from error


MAX_RETRIES: Final = 10
"""The number of retries after a Retry-After; upstream's."""
MAX_RETRY_AFTER: Final = 30.0
"""Seconds. A longer Retry-After is returned to the caller, which decides when to retry."""
UNEXECUTED_CODES: Final = frozenset({429, 500, 503})
"""Codes which, with a Retry-After, mean that the request had no effect."""
RETRY_DELAYS: Final = (0.0, 1.0, 1.0)
"""Seconds before a read without a response is sent again; at first the connection may only have been closed."""


def delay(request: Request, outcome: Answer | NoAnswer, tried: int) -> float | None:
    """Return the seconds until the next attempt after `tried` failed ones, or None if there is none."""
    if isinstance(outcome, NoAnswer):
        return RETRY_DELAYS[tried - 1] if request.is_read and tried <= len(RETRY_DELAYS) else None
    retry_after = outcome.retry_after
    if retry_after is None or retry_after > MAX_RETRY_AFTER or tried > MAX_RETRIES:
        return None
    may = outcome.status in UNEXECUTED_CODES or (request.is_read and outcome.status > 500)
    return retry_after if may else None


class Sender(Struct, frozen=True, kw_only=True):
    """Sends the requests of one component, with its name, its credential and its own limit."""

    transport: Transport
    credential: Credential
    agent: str
    limit: TokenBucket | None
    """None for no limit."""
    clock: Clock
    metrics: ClientMetrics

    async def send(self, request: Request) -> Answer:
        """Return the response to the last attempt; raises `NoAnswer` if there was none."""
        tried = 0
        while True:
            tried += 1
            token = await self.credential.token()
            outcome = await self._attempt(request, token)
            if tried == 1 and _code(outcome) == 401 and self.credential.forget(token):
                continue
            seconds = delay(request, outcome, tried)
            if seconds is None:
                return _answer(outcome)
            self._count_retry(request, outcome)
            await self.clock.sleep(seconds)

    async def _attempt(self, request: Request, token: str) -> Answer | NoAnswer:
        await self._wait_turn(request)
        started = self.clock.monotonic()
        outcome: Answer | NoAnswer
        try:
            outcome = await self.transport.send(request, self._headers(token))
        except NoAnswer as error:
            outcome = error
        self._count(request, _code(outcome), started)
        return outcome

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Try once: a watch is retried by its reflector."""
        token = await self.credential.token()
        await self._wait_turn(request)
        started = self.clock.monotonic()
        async with self.transport.stream(request, self._headers(token)) as stream:
            self._count(request, stream.status, started)
            if stream.status == 401:
                self.credential.forget(token)
            yield stream

    def _headers(self, token: str) -> Mapping[str, str]:
        own = {"User-Agent": self.agent}
        return {**own, "Authorization": f"Bearer {token}"} if token else own

    async def _wait_turn(self, request: Request) -> None:
        if self.limit is None:
            return
        seconds = self.limit.take()
        self.metrics.record_wait(host=self.transport.host, method=request.method, seconds=seconds)
        if seconds:
            await self.clock.sleep(seconds)

    def _count(self, request: Request, code: int | None, started: float) -> None:
        seconds = self.clock.monotonic() - started
        self.metrics.record_result(
            code=code, host=self.transport.host, method=request.method, seconds=seconds
        )

    def _count_retry(self, request: Request, outcome: Answer | NoAnswer) -> None:
        self.metrics.record_retry(code=_code(outcome), host=self.transport.host, method=request.method)


def _code(outcome: Answer | NoAnswer) -> int | None:
    return outcome.status if isinstance(outcome, Answer) else None


def _answer(outcome: Answer | NoAnswer) -> Answer:
    if isinstance(outcome, NoAnswer):
        raise outcome
    return outcome

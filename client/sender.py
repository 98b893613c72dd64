"""Send requests with credentials, rate limits and metrics. Retry after a Retry-After, and reads without a response."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from mockube.component_base.clock import Clock

from .flowcontrol import TokenBucket
from .metrics.requests import ClientMetrics
from .wire import NoResponse, Request, Response, ResponseStream, Transport, Unreachable

TOKEN_REREAD_SECONDS: Final = 60.0
"""The interval at which a token file is read again; upstream's."""


class Credential(Protocol):
    """Provides a bearer token."""

    async def token(self) -> str:
        """Return the current token; empty for requests without one."""

    def forget(self, token: str) -> bool:
        """Drop a token that the server rejected; return whether there may be another one."""


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
        self._cached = ""
        self._reread_at = 0.0

    async def token(self) -> str:
        now = self._clock.monotonic()
        if not self._cached or now >= self._reread_at:
            self._cached = self._read_file()
            self._reread_at = now + TOKEN_REREAD_SECONDS
        return self._cached

    def forget(self, token: str) -> bool:
        """Read the file again at the next request; return whether it contains another token now."""
        if token != self._cached:
            return True
        self._reread_at = 0.0
        return self._read_file() != token

    def _read_file(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            raise Unreachable(f"no token: {error}") from error


MAX_RETRIES: Final = 10
"""The maximum number of retries after a Retry-After; upstream's."""
MAX_RETRY_AFTER: Final = 30.0
"""Seconds. A longer Retry-After is returned to the caller, which decides when to retry."""
UNEXECUTED_CODES: Final = frozenset({429, 500, 503})
"""Status codes that mean, with a Retry-After, that the request had no effect."""
RETRY_DELAYS: Final = (0.0, 1.0, 1.0)
"""The delays before a read without a response is sent again; first 0, because an idle connection may have been closed."""


def retry_delay(request: Request, outcome: Response | NoResponse, attempts: int) -> float | None:
    """Return the seconds until the next attempt after `attempts`; None if the outcome is final."""
    if isinstance(outcome, NoResponse):
        return RETRY_DELAYS[attempts - 1] if request.is_read and attempts <= len(RETRY_DELAYS) else None
    retry_after = outcome.retry_after
    if retry_after is None or retry_after > MAX_RETRY_AFTER or attempts > MAX_RETRIES:
        return None
    may_retry = outcome.status in UNEXECUTED_CODES or (request.is_read and outcome.status > 500)
    return retry_after if may_retry else None


class Sender(Struct, frozen=True, kw_only=True):
    """Sends the requests of one component, with its user agent, credential and rate limit."""

    transport: Transport
    credential: Credential
    agent: str
    limit: TokenBucket | None
    """None for no limit."""
    clock: Clock
    metrics: ClientMetrics

    async def send(self, request: Request) -> Response:
        """Send a request, with retries. Return the last response, or raise `NoResponse` if there was none."""
        attempts = 0
        while True:
            attempts += 1
            token = await self.credential.token()
            outcome = await self._attempt(request, token)
            if attempts == 1 and _code(outcome) == 401 and self.credential.forget(token):
                continue
            seconds = retry_delay(request, outcome, attempts)
            if seconds is None:
                return _response_or_raise(outcome)
            self.metrics.record_retry(code=_code(outcome), host=self.transport.host, method=request.method)
            await self.clock.sleep(seconds)

    async def _attempt(self, request: Request, token: str) -> Response | NoResponse:
        await self._wait_for_rate_limit(request)
        started = self.clock.real.monotonic()
        outcome: Response | NoResponse
        try:
            outcome = await self.transport.send(request, self._headers(token))
        except NoResponse as error:
            outcome = error
        self._count(request, _code(outcome), started)
        if isinstance(outcome, Response):
            sent, received = len(request.body), len(outcome.body)
            self.metrics.record_sizes(
                host=self.transport.host, method=request.method, sent=sent, received=received
            )
        return outcome

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """Open a stream, without retries: reflectors retry watches."""
        token = await self.credential.token()
        await self._wait_for_rate_limit(request)
        started = self.clock.real.monotonic()
        async with self.transport.stream(request, self._headers(token)) as stream:
            self._count(request, stream.status, started)
            if stream.status == 401:
                self.credential.forget(token)
            yield stream

    def _headers(self, token: str) -> Mapping[str, str]:
        headers = {"User-Agent": self.agent}
        return {**headers, "Authorization": f"Bearer {token}"} if token else headers

    async def _wait_for_rate_limit(self, request: Request) -> None:
        if self.limit is None:
            return
        seconds = self.limit.take()
        self.metrics.record_wait(host=self.transport.host, method=request.method, seconds=seconds)
        if seconds:
            await self.clock.sleep(seconds)

    def _count(self, request: Request, code: int | None, started: float) -> None:
        seconds = self.clock.real.monotonic() - started
        self.metrics.record_result(
            code=code, host=self.transport.host, method=request.method, seconds=seconds
        )


def _code(outcome: Response | NoResponse) -> int | None:
    return outcome.status if isinstance(outcome, Response) else None


def _response_or_raise(outcome: Response | NoResponse) -> Response:
    if isinstance(outcome, NoResponse):
        raise outcome
    return outcome

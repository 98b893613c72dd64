"""Faults: requests that are delayed or refused, or whose connection is cut. The server itself does not change."""

import asyncio
from typing import Literal

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.limits import is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, too_many_requests
from mockube.embedded.matching import Matcher
from mockube.embedded.refusals import refusal

Cut = Literal["before", "after"]
"""Whether the connection is cut before the request is executed, or in place of the response."""


class InjectedFault(Struct, frozen=True, kw_only=True):
    """The fault that a request gets."""

    delay: float = 0.0
    """Seconds."""
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after: int = 1
    cut: Cut | None = None


class Rule:
    """Strikes the requests that match, after the first so many, so many times; always, if `times` is None."""

    def __init__(self, matcher: Matcher, fault: InjectedFault, *, times: int | None, after: int) -> None:
        self.matcher = matcher
        self.fault = fault
        self.hits = 0
        self._times = times
        self._remaining_skips = after
        self.waiting: set[asyncio.Event] = set()
        """Set when delayed requests continue."""

    def should_inject(self, request: Request) -> bool:
        """Whether it does so now, which counts."""
        if self.hits == self._times:
            return False
        if not self.matcher.matches(request.user.name, request.user_agent, request.info):
            return False
        if self._remaining_skips:
            self._remaining_skips -= 1
            return False
        self.hits += 1
        return True


class Faults:
    """Middleware that injects faults. Of several rules that match the oldest applies."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: list[Rule] = []
        self._watches: set[Request] = set()
        """Those that run."""
        self._working = 0

    @property
    def is_busy(self) -> bool:
        """Whether the server works on a request that ends by itself; those that are held up do not count."""
        return self._working > 0

    def add(self, rule: Rule) -> None:
        """From now on. To cut watches cuts those that run, too."""
        self._rules.append(rule)
        if rule.fault.cut:
            for request in [watch for watch in self._watches if rule.should_inject(watch)]:
                _cut(request)

    def remove(self, rule: Rule) -> None:
        """Delayed requests continue at once."""
        if rule in self._rules:
            self._rules.remove(rule)
        for waiting in rule.waiting:
            waiting.set()

    def clear(self) -> None:
        for rule in [*self._rules]:
            self.remove(rule)

    async def inject(self, request: Request, proceed: Handle) -> Response:
        rule = next((rule for rule in self._rules if rule.should_inject(request)), None)
        if rule is not None:
            return await self._inject(request, proceed, rule)
        return await self._proceed(request, proceed)

    async def _inject(self, request: Request, proceed: Handle, rule: Rule) -> Response:
        fault = rule.fault
        if fault.delay:
            await self._hold_up(rule, fault.delay)
        if fault.cut == "after":
            await self._proceed(request, proceed)
        if fault.cut:
            _cut(request)
            return too_many_requests()  # the client has disconnected
        if fault.status:
            return refusal(
                request,
                fault.status,
                reason=fault.reason,
                message=fault.message,
                retry_after=fault.retry_after,
            )
        return await self._proceed(request, proceed)

    async def _proceed(self, request: Request, proceed: Handle) -> Response:
        if is_long_running(request.info):
            return await self._watch(request, proceed)
        self._working += 1
        try:
            return await proceed(request)
        finally:
            self._working -= 1

    async def _watch(self, request: Request, proceed: Handle) -> Response:
        self._watches.add(request)
        try:
            return await proceed(request)
        finally:
            self._watches.discard(request)

    async def _hold_up(self, rule: Rule, seconds: float) -> None:
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        rule.waiting.add(over)
        try:
            await over.wait()
        finally:
            rule.waiting.discard(over)
            timer.cancel()


def _cut(request: Request) -> None:
    request.client.abort()

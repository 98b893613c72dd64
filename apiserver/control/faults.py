"""Fault injection: middleware that delays or refuses requests, or cuts their connection."""

import asyncio
from typing import Literal

from msgspec import Struct

from mockube.apiserver.metrics.requests import RESOURCE_ROUTE
from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.limits import is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, too_many_requests
from mockube.component_base.clock import Clock

from .matching import Matcher
from .refusals import injected_error

Cut = Literal["before", "after"]
"""Whether the connection is cut before the request is executed, or after, instead of the response."""


class InjectedFault(Struct, frozen=True, kw_only=True):
    """The fault to inject into a request."""

    delay: float = 0.0
    """The delay in seconds."""
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after: int = 1
    cut: Cut | None = None


class FaultRule:
    """A fault for matching requests: `after` of them are skipped, then `times` of them get it; all, if `times` is None."""

    def __init__(self, matcher: Matcher, fault: InjectedFault, *, times: int | None, after: int) -> None:
        self.matcher = matcher
        self.fault = fault
        self.hits = 0
        self._times = times
        self._remaining_skips = after
        self.delayed: set[asyncio.Event] = set()
        """An event for each delayed request, which continues when it is set."""

    def should_inject(self, request: Request) -> bool:
        """Return whether the request gets the fault, and count it."""
        if self.hits == self._times:
            return False
        if not self.matcher.matches(request.user.name, request.user_agent, request.info):
            return False
        if self._remaining_skips:
            self._remaining_skips -= 1
            return False
        self.hits += 1
        return True


class FaultInjector:
    """Middleware that injects faults. If several rules match, the oldest applies."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: list[FaultRule] = []
        self._running_watches: set[Request] = set()
        """The watches in progress."""
        self._in_progress = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is in progress, except watches and delayed requests."""
        return self._in_progress > 0

    def add(self, rule: FaultRule) -> None:
        """Add a rule. A rule that cuts connections also cuts matching watches in progress."""
        self._rules.append(rule)
        if rule.fault.cut:
            for request in [watch for watch in self._running_watches if rule.should_inject(watch)]:
                _cut(request)

    def remove(self, rule: FaultRule) -> None:
        """Remove a rule; requests that it delays continue at once."""
        if rule in self._rules:
            self._rules.remove(rule)
        for delayed in rule.delayed:
            delayed.set()

    def clear(self) -> None:
        for rule in [*self._rules]:
            self.remove(rule)

    async def inject(self, request: Request, proceed: Proceed) -> Response:
        rule = next((rule for rule in self._rules if rule.should_inject(request)), None)
        if rule is not None:
            return await self._inject(request, proceed, rule)
        return await self._proceed(request, proceed)

    async def _inject(self, request: Request, proceed: Proceed, rule: FaultRule) -> Response:
        fault = rule.fault
        if fault.delay:
            await self._delay(rule, fault.delay)
        if fault.cut == "after":
            await self._proceed(request, proceed)
        if fault.cut:
            _cut(request)
            return too_many_requests()  # the client has disconnected
        if fault.status:
            # Metrics count it as an error of the server.
            request.route = RESOURCE_ROUTE if request.resource else None
            return injected_error(
                request,
                fault.status,
                reason=fault.reason,
                message=fault.message,
                retry_after=fault.retry_after,
            )
        return await self._proceed(request, proceed)

    async def _proceed(self, request: Request, proceed: Proceed) -> Response:
        if is_long_running(request.info):
            return await self._watch(request, proceed)
        self._in_progress += 1
        try:
            return await proceed(request)
        finally:
            self._in_progress -= 1

    async def _watch(self, request: Request, proceed: Proceed) -> Response:
        self._running_watches.add(request)
        try:
            return await proceed(request)
        finally:
            self._running_watches.discard(request)

    async def _delay(self, rule: FaultRule, seconds: float) -> None:
        elapsed = asyncio.Event()
        timer = self._clock.call_later(seconds, elapsed.set)
        rule.delayed.add(elapsed)
        try:
            await elapsed.wait()
        finally:
            rule.delayed.discard(elapsed)
            timer.cancel()


def _cut(request: Request) -> None:
    request.client.abort()

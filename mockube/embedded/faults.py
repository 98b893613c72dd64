"""Faults: requests that come too late, are refused, or whose connection is cut. The server itself stays as it is."""

import asyncio
from typing import Literal

from aiohttp import web
from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.http import errors
from mockube.apiserver.http.request import Asked, Proceed
from mockube.embedded.matching import Matcher
from mockube.embedded.refusals import refusal

Cut = Literal["before", "after"]
"""Whether the connection is cut before the server does what it is asked, or instead of telling that it has done it."""


class Harm(Struct, frozen=True, kw_only=True):
    """What becomes of a request."""

    delay: float = 0.0
    """Seconds."""
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after: int = 1
    cut: Cut | None = None


class Rule:
    """Strikes the requests that match, after the first so many, so many times; always, if `times` is None."""

    def __init__(self, matcher: Matcher, harm: Harm, *, times: int | None, after: int) -> None:
        self.matcher = matcher
        self.harm = harm
        self.struck = 0
        self._times = times
        self._spared = after
        self.waiting: set[asyncio.Event] = set()
        """Set when whoever is held up shall go on."""

    def strikes(self, asked: Asked) -> bool:
        """Whether it does so now, which counts."""
        if self.struck == self._times:
            return False
        if not self.matcher.matches(asked.user.name, asked.user_agent, asked.info):
            return False
        if self._spared:
            self._spared -= 1
            return False
        self.struck += 1
        return True


class Faults:
    """To be put around every request. Of several rules that match the oldest strikes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: list[Rule] = []
        self._watches: set[Asked] = set()
        """Those that run."""
        self._working = 0

    @property
    def is_busy(self) -> bool:
        """Whether the server works on a request that ends by itself; those that are held up do not count."""
        return self._working > 0

    def add(self, rule: Rule) -> None:
        """From now on. To cut watches cuts those that run, too."""
        self._rules.append(rule)
        if rule.harm.cut:
            for asked in [one for one in self._watches if rule.strikes(one)]:
                _cut(asked)

    def remove(self, rule: Rule) -> None:
        """Whom it holds up goes on at once."""
        if rule in self._rules:
            self._rules.remove(rule)
        for waiting in rule.waiting:
            waiting.set()

    def clear(self) -> None:
        for rule in [*self._rules]:
            self.remove(rule)

    async def around(self, asked: Asked, proceed: Proceed) -> web.StreamResponse:
        rule = next((rule for rule in self._rules if rule.strikes(asked)), None)
        if rule is not None:
            return await self._harmed(asked, proceed, rule)
        return await self._proceed(asked, proceed)

    async def _harmed(self, asked: Asked, proceed: Proceed, rule: Rule) -> web.StreamResponse:
        harm = rule.harm
        if harm.delay:
            await self._hold_up(rule, harm.delay)
        if harm.cut == "after":
            await self._proceed(asked, proceed)
        if harm.cut:
            _cut(asked)
            return errors.too_many_requests()  # nobody is there to be told
        if harm.status:
            return refusal(
                asked.info,
                harm.status,
                reason=harm.reason,
                message=harm.message,
                retry_after=harm.retry_after,
            )
        return await self._proceed(asked, proceed)

    async def _proceed(self, asked: Asked, proceed: Proceed) -> web.StreamResponse:
        if asked.info.verb == "watch":
            return await self._watch(asked, proceed)
        self._working += 1
        try:
            return await proceed(asked)
        finally:
            self._working -= 1

    async def _watch(self, asked: Asked, proceed: Proceed) -> web.StreamResponse:
        self._watches.add(asked)
        try:
            return await proceed(asked)
        finally:
            self._watches.discard(asked)

    async def _hold_up(self, rule: Rule, seconds: float) -> None:
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        rule.waiting.add(over)
        try:
            await over.wait()
        finally:
            rule.waiting.discard(over)
            timer.cancel()


def _cut(asked: Asked) -> None:
    transport = asked.http.transport
    if transport is not None:
        transport.abort()

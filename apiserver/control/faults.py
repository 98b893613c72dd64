"""Fault injection: a hook that applies the effects of faults to the requests that match."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.limits import is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.component_base.clock import Clock

from .effects import EFFECTS, Cut, Delay, Effect, Injection, Refuse, check_integer
from .matching import Match

_IS_EXEMPT: Final = ContextVar("is_exempt", default=False)


@contextmanager
def exempt() -> Iterator[None]:
    """Let no request of the block get a fault. They are sent in the loop of the server."""
    token = _IS_EXEMPT.set(True)
    try:
        yield
    finally:
        _IS_EXEMPT.reset(token)


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happens to which requests, as plain data: each effect has a field with its arguments, None without it.

    The first `after` matching requests are skipped, then `times` of them get the fault; all, if `times` is None.
    """

    match: Match = Match()
    delay: Delay | None = None
    cut: Cut | None = None
    refuse: Refuse | None = None
    times: int | None = None
    after: int = 0

    def effects(self) -> Iterator[tuple[Effect, Any]]:
        """Yield the effects with their arguments, in their order."""
        for effect in EFFECTS:
            if (arguments := getattr(self, effect.name)) is not None:
                yield effect, arguments

    def check(self) -> None:
        """Raise ValueError if the fault is invalid."""
        __tracebackhide__ = True
        self.match.check()
        effects = [*self.effects()]
        if not effects:
            raise ValueError(f"a fault needs one of {', '.join(effect.name for effect in EFFECTS)}")
        for effect, arguments in effects:
            effect.check(arguments)
        if self.times is not None:
            check_integer("times", self.times, 1)
        check_integer("after", self.after, 0)


class InjectedFault:
    """A fault of a running server: what it has done so far."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.effects = tuple(fault.effects())
        self.hits = 0
        """The number of requests that got the fault."""
        self.delayed: set[asyncio.Event] = set()
        """An event for each delayed request, which continues when it is set."""
        self._remaining_skips = fault.after

    def takes(self, request: Request) -> bool:
        """Return whether the request gets the fault, and count it."""
        if self.hits == self.fault.times:
            return False
        if not self.fault.match.matches(request.user.name, request.user_agent, request.info):
            return False
        if self._remaining_skips:
            self._remaining_skips -= 1
            return False
        self.hits += 1
        return True


class FaultInjector:
    """A hook that injects faults. If several faults match, the oldest applies."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._faults: list[InjectedFault] = []
        self._running_watches: set[Request] = set()
        """The watches in progress."""
        self._in_progress = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is in progress, except watches and delayed requests."""
        return self._in_progress > 0

    def add(self, fault: Fault) -> InjectedFault:
        """Add a valid fault, and apply it to matching watches in progress if one of its effects does that."""
        injected = InjectedFault(fault)
        self._faults.append(injected)
        interrupts = [effect.interrupt for effect, _ in injected.effects if effect.interrupt is not None]
        if interrupts:
            for request in [watch for watch in self._running_watches if injected.takes(watch)]:
                for interrupt in interrupts:
                    interrupt(request)
        return injected

    def remove(self, injected: InjectedFault) -> None:
        """Remove a fault; requests that it delays continue at once."""
        if injected in self._faults:
            self._faults.remove(injected)
        for delayed in injected.delayed:
            delayed.set()

    def clear(self) -> None:
        for injected in [*self._faults]:
            self.remove(injected)

    async def inject(self, request: Request, proceed: Proceed) -> Response:
        # No fault may prevent its own removal.
        faults = () if request.info.group == CONTROL or _IS_EXEMPT.get() else self._faults
        injected = next((each for each in faults if each.takes(request)), None)
        if injected is None:
            return await self._execute(request, proceed)
        injection = Injection(
            request=request,
            execute=partial(self._execute, request, proceed),
            sleep=partial(self._sleep, injected),
        )
        for effect, arguments in injected.effects:
            response = await effect.apply(injection, arguments)
            if response is not None:
                return response
        return await injection.execute()

    async def _execute(self, request: Request, proceed: Proceed) -> Response:
        if is_long_running(request.info):
            self._running_watches.add(request)
            try:
                return await proceed(request)
            finally:
                self._running_watches.discard(request)
        self._in_progress += 1
        try:
            return await proceed(request)
        finally:
            self._in_progress -= 1

    async def _sleep(self, injected: InjectedFault, seconds: float) -> None:
        elapsed = asyncio.Event()
        timer = self._clock.call_later(seconds, elapsed.set)
        injected.delayed.add(elapsed)
        try:
            await elapsed.wait()
        finally:
            injected.delayed.discard(elapsed)
            timer.cancel()

"""Fault injection: a hook that applies the effects of faults to the requests that match."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.randomness import Random, SystemRandom, fraction
from mockube.apiserver.request import health
from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.limits import WRITES, is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo
from mockube.component_base.clock import Clock
from mockube.etcd.kv import HEAD, Revision

from .effects import (
    EFFECTS,
    ChangeResponse,
    Cut,
    Delay,
    Drop,
    Effect,
    Hold,
    Injection,
    Refuse,
    Repeat,
    Respond,
    Stale,
    Steal,
    check_integer,
)
from .event_selection import EventSelector, FirstEvent, SelectedEvent
from .matching import Candidate, Match, Matcher, no_labels, no_node
from .recorder import is_error

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

    Of the matching requests, each is chosen with the probability `share`. The first `skip` chosen ones are skipped, then `times`
    of them get the fault; all, if `times` is None.
    """

    match: Match = Match()
    delay: Delay | None = None
    cut: Cut | None = None
    refuse: Refuse | None = None
    repeat: Repeat | None = None
    steal: Steal | None = None
    stale: Stale | None = None
    hold: Hold | None = None
    drop: Drop | None = None
    respond: Respond | None = None
    change: ChangeResponse | None = None
    times: int | None = None
    skip: int = 0
    share: float = 1.0

    def effects(self) -> Iterator[tuple[Effect, Any]]:
        """Yield the effects with their arguments, in their order."""
        for effect in EFFECTS:
            if (arguments := getattr(self, effect.name)) is not None:
                yield effect, arguments

    def check(self) -> None:
        """Raise ValueError if the fault is invalid."""
        __tracebackhide__ = True
        self.match.check()
        check_path(self.match.path)
        effects = [*self.effects()]
        if not effects:
            raise ValueError(f"a fault needs one of {', '.join(effect.name for effect in EFFECTS)}")
        for effect, arguments in effects:
            effect.check(arguments)
        if self.times is not None:
            check_integer("times", self.times, 1)
        check_integer("skip", self.skip, 0)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be more than 0 and at most 1, not {self.share}")


def check_path(path: str) -> None:
    """Raise ValueError for the path of a health check, which no fault delays or refuses."""
    __tracebackhide__ = True
    if _is_health_check(path):
        raise ValueError("health checks get no fault")


def _is_health_check(path: str) -> bool:
    return path.lstrip("/").partition("/")[0] in health.ENDPOINTS


def _ignore(_: Request) -> None:
    """Do nothing at a hit."""


def _ignore_event() -> None:
    """Do nothing at an event."""


class InjectedFault:
    """A fault of a running server: what it has done so far."""

    def __init__(
        self,
        fault: Fault,
        name: str = "",
        on_hit: Callable[[Request], None] = _ignore,
        on_event: Callable[[], None] = _ignore_event,
    ) -> None:
        self.fault = fault
        self.name = name
        """The name of its object; "" without one."""
        self.effects = tuple(fault.effects())
        self.matcher = Matcher(fault.match)
        self.hits = 0
        """The number of requests that got the fault."""
        self.delayed: set[asyncio.Event] = set()
        """An event for each delayed request, which continues when it is set."""
        self.at_removal: set[Callable[[], None]] = set()
        """What ends the effects on watches."""
        self.at_write: dict[Callable[[], None], Request] = {}
        """What ends them when the user of the watch writes, with the request of the watch."""
        self.has_ended = False
        """Whether the fault was removed: it does nothing any more to the requests that got it."""
        self._on_hit = on_hit
        self._first_events = {
            span.from_event: FirstEvent(span.from_event, on_event)
            for span in (fault.hold, fault.drop)
            if span is not None and span.from_event is not None
        }
        self._remaining_skips = fault.skip

    def hit(self, request: Request) -> None:
        """Count a request that gets the fault."""
        self.hits += 1
        request.fault = self.name
        self._on_hit(request)

    def first_event(self, selector: EventSelector) -> FirstEvent:
        return self._first_events[selector]

    @property
    def cost(self) -> int:
        """The microseconds in which it is found at most whether a request or an event gets the fault."""
        return 1 + self.matcher.cost + sum(each.cost for each in self._first_events.values())

    @property
    def event(self) -> SelectedEvent | None:
        """The event with which an effect on watches has begun."""
        return next((each.found for each in self._first_events.values() if each.found), None)

    def skips(self) -> bool:
        """Return whether a chosen request is one of the first, which are skipped."""
        if not self._remaining_skips:
            return False
        self._remaining_skips -= 1
        return True

    def note_write(self, request: Request) -> None:
        """End the effects on watches of the user who has written, of the same resource."""
        for end, watching in [*self.at_write.items()]:
            if _is_of_same(request, watching):
                end()

    def end(self) -> None:
        """Let delayed requests and watches continue."""
        self.has_ended = True
        for delayed in self.delayed:
            delayed.set()
        for end in [*self.at_removal]:
            end()


_REMOVAL_PATHS: Final = frozenset({"/api", "/apis", "/version"})
_REMOVAL_PREFIXES: Final = (f"/apis/{CONTROL}/", "/openapi/", "/mockube/")


def _is_for_removal(info: RequestInfo) -> bool:
    """Return whether a client such as kubectl may need a request before it can remove a fault: discovery of the group of control."""
    path = info.path.rstrip("/")
    return not info.is_resource and (path in _REMOVAL_PATHS or f"{path}/".startswith(_REMOVAL_PREFIXES))


def _is_of_same(request: Request, watching: Request) -> bool:
    info, watched = request.info, watching.info
    return (
        request.user.name == watching.user.name
        and (info.group, info.resource) == (watched.group, watched.resource)
        and watched.namespace in ("", info.namespace)
    )


async def _steal_nothing(_request: Request, _steal: Steal) -> None:
    """Steal no Lease: there is no store."""


def _newest_revision(_: float) -> Revision:
    """Return the newest revision: there is no store with others."""
    return HEAD


class FaultStore(Struct, frozen=True, kw_only=True):
    """What faults need of the store: nothing without one."""

    labels_of: Callable[[RequestInfo], Mapping[str, str]] = no_labels
    """Returns the labels of the object of a request, if it exists."""
    node_of: Callable[[RequestInfo], str] = no_node
    """Returns the node that the object of a request belongs to."""
    steal: Callable[[Request, Steal], Awaitable[None]] = _steal_nothing
    """Steals the Lease of a request."""
    revision_before: Callable[[float], Revision] = _newest_revision
    """Returns the revision that was the newest so many seconds ago."""


NO_STORE: Final = FaultStore()


class FaultInjector:
    """A hook that injects faults. If several faults match, the oldest applies."""

    def __init__(
        self,
        clock: Clock,
        random: Random | None = None,
        store: FaultStore = NO_STORE,
        watches: Collection[Request] = (),
    ) -> None:
        """Create an injector without faults; `watches` are those in progress, also those that have begun without this hook."""
        self._clock, self._random, self._store = clock, random or SystemRandom(), store
        self._faults: list[InjectedFault] = []
        self.on_change: list[Callable[[], None]] = []
        """Called when a fault is added or removed."""
        self._watches = watches
        self._running_watches: set[Request] = set()
        """The watches in progress that have passed this hook."""
        self._in_progress = 0

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    @property
    def is_busy(self) -> bool:
        """Whether a request is in progress, except watches and delayed requests."""
        return self._in_progress > 0

    def add(self, fault: Fault) -> InjectedFault:
        """Add a valid fault, and apply it to matching watches in progress if one of its effects does that."""
        return self.add_injected(InjectedFault(fault))

    def add_injected(self, injected: InjectedFault) -> InjectedFault:
        self._faults.append(injected)
        self._report_change()
        interrupting = [
            (effect.interrupt, arguments)
            for effect, arguments in injected.effects
            if effect.interrupt is not None and effect.interrupts(arguments)
        ]
        if interrupting:
            running = {*self._running_watches, *self._watches}
            for request in [watch for watch in running if self._takes_watch(injected, watch)]:
                injection = self._injection(injected, request, _no_endpoint)
                for interrupt, arguments in interrupting:
                    interrupt(injection, arguments)
        return injected

    def remove(self, injected: InjectedFault) -> None:
        """Remove a fault; requests that it delays continue at once."""
        if injected in self._faults:
            self._faults.remove(injected)
            self._report_change()
        injected.end()

    def _report_change(self) -> None:
        for changed in self.on_change:
            changed()

    def clear(self) -> None:
        for injected in [*self._faults]:
            self.remove(injected)

    async def inject(self, request: Request, proceed: Proceed) -> Response:
        if request.info.group == CONTROL:
            return await proceed(request)  # an advance does not wait for itself
        injected = self._find(request) if self._faults else None
        if injected is None:
            return await self._execute(request, proceed)
        injection = self._injection(injected, request, proceed)
        for effect, arguments in injected.effects:
            response = await effect.apply(injection, arguments)
            if response is not None:
                request.is_answered_by_fault = effect.responds
                return response
            if injected.has_ended:
                break
        return await injection.execute()

    def _find(self, request: Request) -> InjectedFault | None:
        info = request.info
        if _IS_EXEMPT.get() or (not info.is_resource and _is_health_check(info.path)):
            return None
        faults: Sequence[InjectedFault] = self._faults
        if _is_for_removal(info):
            # A path of wildcards alone names no request, and a fault for all of them must be removable.
            faults = [each for each in faults if each.fault.match.path.strip("*?")]
        candidate = self._candidate(request)
        return next((each for each in faults if self._takes(each, request, candidate)), None)

    def _candidate(self, request: Request) -> Candidate:
        store = self._store
        return Candidate(request.user.name, request.user_agent, request.info, store.labels_of, store.node_of)

    def _takes(self, injected: InjectedFault, request: Request, candidate: Candidate) -> bool:
        """Return whether the request gets the fault, and count it."""
        fault = injected.fault
        if injected.hits == fault.times or not injected.matcher.matches(candidate):
            return False
        if fault.share < 1 and fraction(self._random) >= fault.share:
            return False
        if injected.skips():
            return False
        injected.hit(request)
        return True

    def _takes_watch(self, injected: InjectedFault, watch: Request) -> bool:
        """Return whether a watch that is in progress gets a fault that is added."""
        return watch.info.group != CONTROL and self._takes(injected, watch, self._candidate(watch))

    def _injection(self, injected: InjectedFault, request: Request, proceed: Proceed) -> Injection:
        return Injection(
            request=request,
            execute=partial(self._execute, request, proceed),
            sleep=partial(self._sleep, injected),
            at_removal=injected.at_removal,
            has_ended=lambda: injected.has_ended,
            at_write=injected.at_write,
            monotonic=self._clock.monotonic,
            revision_before=self._store.revision_before,
            first_event=injected.first_event,
            steal=self._store.steal,
            call_later=self._clock.call_later,
        )

    async def _execute(self, request: Request, proceed: Proceed) -> Response:
        if is_long_running(request.info):
            self._running_watches.add(request)
            try:
                return await proceed(request)
            finally:
                self._running_watches.discard(request)
        self._in_progress += 1
        try:
            response = await proceed(request)
        finally:
            self._in_progress -= 1
        if self._faults and request.info.verb in WRITES and not is_error(response.status):
            for injected in [*self._faults]:
                injected.note_write(request)
        return response

    async def _sleep(self, injected: InjectedFault, seconds: float) -> None:
        elapsed = asyncio.Event()
        timer = self._clock.call_later(seconds, elapsed.set)
        injected.delayed.add(elapsed)
        try:
            await elapsed.wait()
        finally:
            injected.delayed.discard(elapsed)
            timer.cancel()


async def _no_endpoint(_: Request) -> Response:
    raise AssertionError("a watch in progress is interrupted, and not executed again")

"""What a fault does to a request: a table with a row for each effect."""

from collections.abc import Awaitable, Callable
from functools import partial
from types import UnionType
from typing import Any, Final, Literal

import orjson
from msgspec import Struct
from multidict import CIMultiDict

from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.status import Expired
from mockube.apiserver.metrics.requests import RESOURCE_ROUTE
from mockube.apiserver.registry.watch_stream import ClientWatch, WatchEvent
from mockube.apiserver.request.request import ACCEPT, Request
from mockube.apiserver.request.response import JSON, Response, too_many_requests
from mockube.component_base.clock import Timer
from mockube.etcd.kv import Revision

from .event_selection import EVENT_TYPES, MAX_SKIPPED_EVENTS, EventSelector, FirstEvent
from .patterns import Pattern
from .refusals import TOO_OLD, injected_error


def _always(_: Any) -> bool:
    return True


class Injection(Struct, frozen=True, kw_only=True):
    """A request that gets a fault."""

    request: Request
    execute: Callable[[], Awaitable[Response]]
    """Handles the request as without the fault."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits some seconds; less if the fault is removed meanwhile."""
    at_removal: set[Callable[[], None]]
    """What is called when the fault is removed; what has ended before is discarded."""
    has_ended: Callable[[], bool]
    """Returns whether the fault was removed."""
    call_later: Callable[[float, Callable[[], None]], Timer]
    """Calls a function after some seconds of the cluster."""
    at_write: dict[Callable[[], None], Request]
    """What is called when the user of a watch has written to the resource that it watches, with the request of the watch."""
    monotonic: Callable[[], float]
    """Returns the seconds of the cluster's clock, in which changes are observed."""
    revision_before: Callable[[float], Revision]
    """Returns the revision that was the newest so many seconds ago."""
    first_event: Callable[[EventSelector], FirstEvent]
    """Returns the event that a selector selects, which is the same for all watches of the fault."""
    steal: Callable[[Request, "Steal"], Awaitable[None]]
    """Lets another candidate hold the Lease that a request is for."""


class Effect(Struct, frozen=True, kw_only=True):
    """One effect: the field of `Fault` with its arguments, their rules, and what it does."""

    name: str
    arguments: type[Struct]
    check: Callable[[Any], None]
    """Raises ValueError for invalid arguments."""
    apply: Callable[[Injection, Any], Awaitable[Response | None]]
    """Returns the response; None if the next effect has its turn, and after the last one the request is executed."""
    interrupt: Callable[[Injection, Any], None] | None = None
    """What it does to a matching watch that is in progress when the fault is added."""
    interrupts: Callable[[Any], bool] = _always
    """Whether it does that with these arguments."""
    responds: bool = False
    """Whether the response is that of the fault, and not one that the server gives or would give."""


def _is_number(value: object, types: type | UnionType) -> bool:
    """Return whether a value has one of these types of numbers; a bool has none. Arguments from Python may have any type."""
    return isinstance(value, types) and not isinstance(value, bool)


def check_integer(name: str, value: int, least: int, most: int | None = None) -> None:
    """Raise ValueError if an argument is no integer, or out of its range."""
    __tracebackhide__ = True
    if not _is_number(value, int):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    if most is None and value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    if most is not None and not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value}")


# --- delay

MAX_DELAY_SECONDS: Final = 1e9
"""More than 30 years."""


class Delay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: float


def _check_delay(delay: Delay) -> None:
    _check_seconds("delay", delay.seconds)


def _check_seconds(name: str, seconds: float) -> None:
    if not _is_number(seconds, int | float):
        raise ValueError(f"{name} is a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"{name} is 0 or more seconds, not {seconds}")
    if seconds > MAX_DELAY_SECONDS:
        raise ValueError(f"{name} is at most {MAX_DELAY_SECONDS:.0f} seconds, not {seconds}")


async def _delay(injection: Injection, delay: Delay) -> None:
    await injection.sleep(delay.seconds)


# --- cut


class Cut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: Literal["before", "after"]
    """Whether the connection is cut before the request is executed, or after, instead of the response."""


def _check_cut(cut: Cut) -> None:
    if cut.when not in ("before", "after"):
        raise ValueError(f'cut must be "before" or "after", not {cut.when!r}')


async def _cut(injection: Injection, cut: Cut) -> Response:
    response = await injection.execute() if cut.when == "after" else too_many_requests()
    _cut_connection(injection.request)
    return response  # nobody gets it, and only the record of a stream has its code


def _cut_watch(injection: Injection, _: Cut) -> None:
    _cut_connection(injection.request)


def _cut_connection(request: Request) -> None:
    request.is_cut = request.is_aborted = True
    request.client.abort()


# --- refuse


class Refuse(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    status: int
    reason: str = ""
    """The reason and the message in place of those that kube-apiserver has for the status."""
    message: str = ""
    retry_after: int = 1
    """The seconds of Retry-After, for a status that has it."""


MAX_RETRY_AFTER: Final = 2**31 - 1
"""The field retryAfterSeconds of a Status is an int32."""


def _check_refuse(refuse: Refuse) -> None:
    check_integer("status", refuse.status, 400, 599)
    check_integer("retryAfter", refuse.retry_after, 0, MAX_RETRY_AFTER)
    _check_text("reason", refuse.reason)
    _check_text("message", refuse.message)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not _is_unicode(value):
        raise ValueError(f"{name} must be a text of valid Unicode, not {value!r}")


def _is_unicode(text: str) -> bool:
    """Return whether a text can be sent: a lone surrogate cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


async def _refuse(injection: Injection, refuse: Refuse) -> Response:
    request = injection.request
    request.route = RESOURCE_ROUTE if request.resource else None  # metrics count it as an error of the server
    return injected_error(
        request,
        refuse.status,
        reason=refuse.reason,
        message=refuse.message,
        retry_after=refuse.retry_after,
    )


def _is_expiry(refuse: Refuse) -> bool:
    return refuse.status == Expired.default_code


def _expire_watch(injection: Injection, _: Refuse) -> None:
    """End a watch in progress as one that is too old; its client lists again."""
    watch = injection.request.client_watch
    if watch is not None:
        watch.end(Expired(TOO_OLD))


# --- stale


class Stale(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The store as it was: at a revision, or a time before each request and each event. One of them is given."""

    revision: int | None = None
    """The revision of the store at which a get or a list reads, and at which a watch stands still until the fault is removed."""
    seconds: float | None = None
    """How long before now a get or a list reads, and how late a watch gets its events."""


def _check_stale(stale: Stale) -> None:
    if (stale.revision is None) == (stale.seconds is None):
        raise ValueError("give either revision or seconds")
    if stale.revision is not None:
        check_integer("revision", stale.revision, 1)
    else:
        _check_seconds("seconds", stale.seconds or 0)


async def _read_stale(injection: Injection, stale: Stale) -> None:
    request = injection.request
    request.read_revision = (
        injection.revision_before(stale.seconds or 0) if stale.revision is None else stale.revision
    )
    if request.info.verb == "watch":
        _lag_watch(injection, stale)


def _lag_watch(injection: Injection, stale: Stale) -> None:
    if stale.seconds is None:
        _on_watch(injection, _UNTIL_REMOVAL, ClientWatch.lag)
    else:
        _on_watch(injection, _UNTIL_REMOVAL, partial(_delay_events, injection, stale.seconds))


def _delay_events(injection: Injection, seconds: float, watch: ClientWatch) -> Callable[[], None]:
    """Let a watch get each event so many seconds after its change, until the returned function is called."""
    timers: dict[Callable[[], None], Timer] = {}

    def stops(event: WatchEvent) -> bool:
        remaining = 0 if event.change is None else event.change.observed_at + seconds - injection.monotonic()
        if remaining <= 0:
            return False
        release = watch.hold()

        def release_event() -> None:
            del timers[release]
            release()

        timers[release] = injection.call_later(remaining, release_event)
        return True

    end_stops = watch.stop_before(stops)

    def end() -> None:
        end_stops()
        for release, timer in timers.items():
            timer.cancel()
            release()
        timers.clear()

    return end


# --- repeat


class Repeat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request is executed twice, as if a client or a proxy had lost the first response and sent it again."""


def _check_repeat(_: Repeat) -> None:
    """Accept it: there are no arguments."""


async def _repeat(injection: Injection, _: Repeat) -> None:
    injection.request.is_repeated = True


# --- steal


class Steal(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    holder: str = "mockube-fault"
    """The holderIdentity of the candidate that takes the Lease before the request is executed."""
    seconds: int | None = None
    """The leaseDurationSeconds; those of the Lease, if it is None. Nobody renews it."""


MAX_LEASE_SECONDS: Final = 2**31 - 1


def _check_steal(steal: Steal) -> None:
    _check_text("holder", steal.holder)
    if not steal.holder:
        raise ValueError("holder must not be empty")
    if steal.seconds is not None:
        check_integer("seconds", steal.seconds, 1, MAX_LEASE_SECONDS)


async def _steal(injection: Injection, steal: Steal) -> None:
    await injection.steal(injection.request, steal)


# --- respond


class Respond(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    status: int = 200
    body: dict[str, Any]
    """The response, in JSON, in place of that of the request, which is not executed."""


_WITHOUT_BODY: Final = (204, 205, 304)
"""A client takes the body of such a response for the beginning of the next one."""


def _check_respond(respond: Respond) -> None:
    check_integer("status", respond.status, 200, 599)
    if respond.status in _WITHOUT_BODY:
        raise ValueError(f"a response with the status {respond.status} has no body")


async def _respond(injection: Injection, respond: Respond) -> Response:
    injection.request.route = RESOURCE_ROUTE if injection.request.resource else None
    return Response(respond.status, [orjson.dumps(respond.body), b"\n"])


# --- change


class ChangeResponse(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    merge_patch: dict[str, Any]
    """A JSON merge patch of the response, which the server sends as JSON."""


def _check_change(change: ChangeResponse) -> None:
    if not change.merge_patch:
        raise ValueError("mergePatch must not be empty")


async def _change(injection: Injection, change: ChangeResponse) -> Response:
    request = injection.request
    headers = CIMultiDict(request.headers)
    headers[ACCEPT] = JSON
    request.headers = headers
    response = await injection.execute()
    if not response.content_type.startswith(JSON) or not response.size:
        return response  # of a stream, or plain text
    tree = json_merge.apply(orjson.loads(response.body), change.merge_patch)
    return Response(
        response.status,
        [orjson.dumps(tree), b"\n"],
        headers=response.headers,
        warnings=response.warnings,
        retry_after=response.retry_after,
    )


# --- hold and drop


class Interruption(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """From which event on the events of a watch are held back, or lost, and how long: until the fault is removed, or what it says comes before that."""

    from_event: EventSelector | None = None
    """The event with which it begins; None for at once."""
    seconds: float | None = None
    until_write: bool = False
    """Until the user of the watch has written to the resource that it watches."""


class Hold(Interruption, frozen=True, kw_only=True):
    """The events of a watch are held back."""


class Drop(Interruption, frozen=True, kw_only=True):
    """The changes of objects are lost for a watch."""


_UNTIL_REMOVAL: Final = Interruption()


def _check_interruption(span: Interruption) -> None:
    if span.seconds is not None:
        _check_seconds("seconds", span.seconds)
    if span.from_event is not None:
        _check_event(span.from_event)


def _check_event(event: EventSelector) -> None:
    check_integer("fromEvent.skip", event.skip, 0, MAX_SKIPPED_EVENTS)
    for type_ in event.types:
        if type_ not in EVENT_TYPES:
            raise ValueError(f'fromEvent.types: "{type_}" is not one of {", ".join(EVENT_TYPES)}')
    for pattern in (event.namespace or "", event.name):
        Pattern(pattern)


def _on_watch(
    injection: Injection, span: Interruption, begin: Callable[[ClientWatch], Callable[[], None]]
) -> None:
    """Let an effect begin on the watch of a request, which may not be open yet, and end after its time or with the fault."""
    request = injection.request

    def apply(watch: ClientWatch) -> None:
        if injection.has_ended():  # while the watch was opened
            return
        if span.from_event is None:
            _begin_span(injection, span, watch, begin)
            return
        first = injection.first_event(span.from_event)
        has_begun = False

        def stops(event: WatchEvent) -> bool:
            nonlocal has_begun
            if has_begun or not first.precedes(event, watch.resource_prefix):
                return False
            has_begun = True
            _begin_span(injection, span, watch, begin)
            return True

        _until_removal(injection, watch, watch.stop_before(stops))

    if request.client_watch is None:
        request.on_watch.append(apply)
    else:
        apply(request.client_watch)


def _until_removal(injection: Injection, watch: ClientWatch, end: Callable[[], None]) -> None:
    """Let something on a watch end with the fault."""
    injection.at_removal.add(end)
    watch.on_close.append(lambda: injection.at_removal.discard(end))


def _begin_span(
    injection: Injection,
    span: Interruption,
    watch: ClientWatch,
    begin: Callable[[ClientWatch], Callable[[], None]],
) -> None:
    end_effect = begin(watch)
    timer: Timer | None = None

    def end() -> None:
        end_effect()
        injection.at_removal.discard(end)
        injection.at_write.pop(end, None)
        if timer is not None:
            timer.cancel()

    injection.at_removal.add(end)
    watch.on_close.append(end)
    if span.until_write:
        injection.at_write[end] = injection.request
    if span.seconds is not None:
        timer = injection.call_later(span.seconds, end)


def _hold_watch(injection: Injection, hold: Hold) -> None:
    _on_watch(injection, hold, ClientWatch.hold)


def _drop_events(injection: Injection, drop: Drop) -> None:
    _on_watch(injection, drop, ClientWatch.drop)


async def _hold(injection: Injection, hold: Hold) -> None:
    _hold_watch(injection, hold)


async def _drop(injection: Injection, drop: Drop) -> None:
    _drop_events(injection, drop)


EFFECTS: Final = (
    Effect(name="delay", arguments=Delay, check=_check_delay, apply=_delay),
    Effect(name="cut", arguments=Cut, check=_check_cut, apply=_cut, interrupt=_cut_watch, responds=True),
    Effect(
        name="refuse",
        arguments=Refuse,
        check=_check_refuse,
        apply=_refuse,
        interrupt=_expire_watch,
        interrupts=_is_expiry,
        responds=True,
    ),
    Effect(name="repeat", arguments=Repeat, check=_check_repeat, apply=_repeat),
    Effect(name="steal", arguments=Steal, check=_check_steal, apply=_steal),
    Effect(name="stale", arguments=Stale, check=_check_stale, apply=_read_stale, interrupt=_lag_watch),
    Effect(name="hold", arguments=Hold, check=_check_interruption, apply=_hold, interrupt=_hold_watch),
    Effect(name="drop", arguments=Drop, check=_check_interruption, apply=_drop, interrupt=_drop_events),
    Effect(name="respond", arguments=Respond, check=_check_respond, apply=_respond, responds=True),
    Effect(name="change", arguments=ChangeResponse, check=_check_change, apply=_change),
)
"""All effects, in the order in which a fault with several of them applies them."""

"""What a fault does to a request: a table with a row for each effect."""

from collections.abc import Awaitable, Callable
from types import UnionType
from typing import Any, Final, Literal

from msgspec import Struct

from mockube.apiserver.metrics.requests import RESOURCE_ROUTE
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, too_many_requests

from .refusals import injected_error


class Injection(Struct, frozen=True, kw_only=True):
    """A request that gets a fault."""

    request: Request
    execute: Callable[[], Awaitable[Response]]
    """Handles the request as without the fault."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits some seconds; less if the fault is removed meanwhile."""


class Effect(Struct, frozen=True, kw_only=True):
    """One effect: the field of `Fault` with its arguments, their rules, and what it does."""

    name: str
    arguments: type[Struct]
    check: Callable[[Any], None]
    """Raises ValueError for invalid arguments."""
    apply: Callable[[Injection, Any], Awaitable[Response | None]]
    """Returns the response; None if the next effect has its turn, and after the last one the request is executed."""
    interrupt: Callable[[Request], None] | None = None
    """What it does to a matching watch that is in progress when the fault is added."""


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
    seconds = delay.seconds
    if not _is_number(seconds, int | float):
        raise ValueError(f"delay is a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"delay is 0 or more seconds, not {seconds}")
    if seconds > MAX_DELAY_SECONDS:
        raise ValueError(f"delay is at most {MAX_DELAY_SECONDS:.0f} seconds, not {seconds}")


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
    if cut.when == "after":
        await injection.execute()
    _abort(injection.request)
    return too_many_requests()  # the client has disconnected


def _abort(request: Request) -> None:
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


EFFECTS: Final = (
    Effect(name="delay", arguments=Delay, check=_check_delay, apply=_delay),
    Effect(name="cut", arguments=Cut, check=_check_cut, apply=_cut, interrupt=_abort),
    Effect(name="refuse", arguments=Refuse, check=_check_refuse, apply=_refuse),
)
"""All effects, in the order in which a fault with several of them applies them."""

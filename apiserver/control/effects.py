"""What a fault does to a request: a table with a row for each effect."""

import math
from collections.abc import Awaitable, Callable
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


# --- delay


class Delay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: float


def _check_delay(delay: Delay) -> None:
    if not 0 <= delay.seconds < math.inf:
        raise ValueError(f"delay is 0 or more seconds, not {delay.seconds}")


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


def _check_refuse(refuse: Refuse) -> None:
    if not 400 <= refuse.status < 600:
        raise ValueError(f"status must be from 400 to 599, not {refuse.status}")


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

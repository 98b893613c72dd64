"""The hook points of a server: middleware around the later filters, which is added and removed while the server runs.

The filters themselves are built once. Without hooks, a point costs one comparison of each request.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from .request import Request
from .response import Response

Proceed: TypeAlias = Callable[[Request], Awaitable[Response]]
"""Handles a request by the later hooks of a point, the later filters and the endpoint. It raises no error."""

Middleware: TypeAlias = Callable[[Request, Proceed], Awaitable[Response]]
"""Handles a request; calls the given function to proceed, at most once. It raises no error."""


class ProceededTwice(RuntimeError):
    """Middleware has proceeded twice with one request, which would take two places in flight and leave one."""

    def __init__(self) -> None:
        super().__init__("a hook must not call proceed twice for one request")


class RequestHook:
    """The handle of middleware that was added to a point."""

    def __init__(self, point: "HookPoint", middleware: Middleware) -> None:
        self._point = point
        self.middleware = middleware

    def remove(self) -> None:
        """Remove the middleware from later requests; those in progress end as they began. A second call does nothing."""
        self._point.remove(self)


class HookPoint:
    """A place in the chain of filters. What was added first is the outermost."""

    def __init__(self) -> None:
        self._hooks: list[RequestHook] = []
        self.middleware: Middleware | None = None
        """All middleware of this point as one; None if there is none."""

    def add(self, middleware: Middleware) -> RequestHook:
        hook = RequestHook(self, middleware)
        self._hooks.append(hook)
        self._compose()
        return hook

    def remove(self, hook: RequestHook) -> None:
        if hook in self._hooks:
            self._hooks.remove(hook)
            self._compose()

    def _compose(self) -> None:
        self.middleware = _as_one([hook.middleware for hook in self._hooks]) if self._hooks else None


def proceeding_once(proceed: Proceed) -> Proceed:
    """Return what the middleware of one request gets to proceed: a second call raises `ProceededTwice`."""
    has_proceeded = False

    def proceed_once(request: Request) -> Awaitable[Response]:
        nonlocal has_proceeded
        if has_proceeded:
            raise ProceededTwice
        has_proceeded = True
        return proceed(request)

    return proceed_once


def _as_one(middlewares: Sequence[Middleware]) -> Middleware:
    outermost, *others = middlewares
    if not others:
        return outermost
    inner = _as_one(others)
    return lambda request, proceed: outermost(request, lambda passed: inner(passed, proceed))


class HookPoints(Struct, frozen=True):
    """The points of one server."""

    before_authentication: HookPoint = field(default_factory=HookPoint)
    """Around everything that needs the user, who is not known yet. A request that is refused as unauthenticated passes it."""
    before_endpoint: HookPoint = field(default_factory=HookPoint)
    """Around the limits, the authorization and the endpoint. The user is known, and is the impersonated one.

    It lies before the filters that refuse a request because of its user or of the load, so that a hook observes these
    responses, too, and so that a request that a hook delays takes no place in flight and has its time afterwards.
    """

    watches: set[Request] = field(default_factory=set)
    """The watches in progress, also those that have passed a point before its hooks were added."""

    @property
    def is_empty(self) -> bool:
        return self.before_authentication.middleware is None and self.before_endpoint.middleware is None

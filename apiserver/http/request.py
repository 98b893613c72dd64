"""A request as it arrived: its URL, its headers, and the user that it is made as.

Rarely needed parts are computed when they are read. Headers are decoded as UTF-8, with replacements as in Go; aiohttp
returns surrogates for such bytes, which neither JSON nor a log can encode.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from aiohttp import hdrs, web

from mockube.apiserver.authz.chain import Verdict
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.request.impersonation import Impersonated
from mockube.apiserver.request.request_info import RequestInfo
from mockube.apiserver.user import User


def header(request: web.BaseRequest, name: str) -> str:
    """The first header of a name; "" if there is none."""
    text = request.headers.get(name, "")
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


APPLY = "application/apply-patch"


class Asked:
    __slots__ = (
        "authenticated",
        "decision",
        "http",
        "impersonated",
        "in_flight",
        "info",
        "query",
        "resource",
        "user",
    )

    def __init__(
        self,
        http: web.BaseRequest,
        info: RequestInfo,
        query: Mapping[str, Sequence[str]],
        user: User,
        resource: Resource | None = None,
    ) -> None:
        self.http = http
        self.info = info
        self.query = query
        self.resource = resource
        """None for a path that is no resource's."""
        self.authenticated = user
        """Whose credentials were sent."""
        self.user = user
        """Who makes the request: the authenticated user, or the one that is impersonated."""
        self.impersonated: Impersonated | None = None
        self.decision: Verdict | None = None
        """Of the authorizer; None before it is asked."""
        self.in_flight = False
        """Whether it takes a place among the requests in flight, until its answer is written."""

    @property
    def uri(self) -> str:
        return self.http.path_qs

    @property
    def source(self) -> str:
        return self.http.remote or ""

    @property
    def user_agent(self) -> str:
        return header(self.http, hdrs.USER_AGENT)

    @property
    def is_dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def applies(self) -> bool:
        return self.info.verb == "patch" and header(self.http, hdrs.CONTENT_TYPE).startswith(APPLY)


Proceed: TypeAlias = Callable[[Asked], Awaitable[web.StreamResponse]]
"""What the server makes of a request. It raises nothing: errors are answers by then."""

Middleware: TypeAlias = Callable[[Asked, Proceed], Awaitable[web.StreamResponse]]
"""Given a request and how to proceed with it; must raise nothing either."""

"""A request as it came in, and what is found out about it first: what it asks for, and who asks.

What is seldom wanted is looked up when somebody wants it.
"""

from collections.abc import Mapping, Sequence

from aiohttp import hdrs, web

from apiserver.http.headers import header
from apiserver.http.requestinfo import RequestInfo
from apiserver.rest.call import User

APPLY = "application/apply-patch"


class Asked:
    __slots__ = ("http", "info", "query", "user")

    def __init__(
        self, http: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> None:
        self.http = http
        self.info = info
        self.query = query
        self.user = user

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

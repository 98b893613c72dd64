"""Whom a request is made by: the authenticated user, the user whom he impersonates, and whether that one may make it."""

import math
import ssl
from functools import lru_cache
from typing import Final

from aiohttp import hdrs, web

from mockube.apiserver.authn.chain import Authentication
from mockube.apiserver.authn.credentials import DistinguishedName, Presented, token_of_subprotocols
from mockube.apiserver.authz.chain import Attributes, Authorization, Decision, forbidden
from mockube.apiserver.http.request import Asked, header
from mockube.apiserver.http.streams import is_websocket, subprotocols
from mockube.apiserver.request import impersonation
from mockube.apiserver.request.request_info import RequestInfo
from mockube.apiserver.user import User

_IMPERSONATE: Final = b"impersonate-"
_INITIALS: Final = (b"I", b"i")


class RequestAuthenticator:
    def __init__(self, authentication: Authentication, authorization: Authorization) -> None:
        self._authentication = authentication
        self._authorization = authorization

    async def authenticated(self, request: web.BaseRequest, info: RequestInfo) -> User:
        """Return the user that the credentials stand for, or raise Unauthorized."""
        subject, end = _certificate(request)
        token = ""
        if hdrs.SEC_WEBSOCKET_PROTOCOL in request.headers and is_websocket(request):
            token, _ = token_of_subprotocols(subprotocols(request))
        presented = Presented(header(request, hdrs.AUTHORIZATION), subject, end, token)
        return await self._authentication.authenticate(presented, info.verb, info.path)

    async def impersonate(self, asked: Asked) -> None:
        """Replace the user by the one that the Impersonate headers name, or raise Forbidden or BadRequest."""
        headers = [
            (name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
            for name, value in asked.http.raw_headers
            if name[: len(_IMPERSONATE)].lower() == _IMPERSONATE
        ]
        wanted = impersonation.read(headers)
        if wanted is None:
            return
        request = _attributes(asked.user, asked.info)
        asked.impersonated = await impersonation.impersonate(self._authorization, request, wanted)
        asked.user = asked.impersonated.user

    async def require(self, asked: Asked) -> None:
        """Raise Forbidden, unless the user may make the request; note the decision for the audit log."""
        attributes = _attributes(asked.user, asked.info)
        decision, reason = await self._authorization.decide(attributes)
        asked.decision = decision, reason
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)


def is_impersonation(request: web.BaseRequest) -> bool:
    """Whether a request has any Impersonate header."""
    for name, _ in request.raw_headers:  # a loop, for a generator costs as much as all else here
        if name[:1] in _INITIALS and name[: len(_IMPERSONATE)].lower() == _IMPERSONATE:
            return True
    return False


def _attributes(user: User, info: RequestInfo) -> Attributes:
    return Attributes(
        user=user,
        verb=info.verb,
        path=info.path,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
    )


def _certificate(request: web.BaseRequest) -> tuple[DistinguishedName, float]:
    """The subject of the client's certificate, and when it expires."""
    transport = request.transport
    shown = transport.get_extra_info("peercert") if transport is not None else None
    return (shown["subject"], _seconds(shown["notAfter"])) if shown else ((), math.inf)


_seconds = lru_cache(maxsize=1024)(ssl.cert_time_to_seconds)

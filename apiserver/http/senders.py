"""Who sends a request: what its connection and headers show, looked at by the authenticators; or whom he acts as."""

from aiohttp import hdrs, web

from apiserver.authn import impersonation
from apiserver.authn.chain import Authentication
from apiserver.authn.presented import DistinguishedName, Presented
from apiserver.authz.attributes import Attributes
from apiserver.authz.chain import Authorization
from apiserver.http.headers import header
from apiserver.http.requestinfo import RequestInfo
from apiserver.rest.call import User

_IMPERSONATE = b"impersonate-"


class Senders:
    def __init__(self, authentication: Authentication, authorization: Authorization) -> None:
        self._authentication = authentication
        self._authorization = authorization

    async def sender(self, request: web.BaseRequest) -> User:
        """The user who counts, or Unauthorized, or Forbidden."""
        presented = Presented(header(request, hdrs.AUTHORIZATION), _certificate(request))
        user = await self._authentication.authenticate(presented, request.path)
        headers = [
            (name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
            for name, value in request.raw_headers
            if name[: len(_IMPERSONATE)].lower() == _IMPERSONATE
        ]
        wanted = impersonation.read(headers) if headers else None
        if wanted is None:
            return user
        return await impersonation.impersonate(self._authorization, user, wanted)

    async def require(self, user: User, info: RequestInfo) -> None:
        """Raise Forbidden, unless the user may make the request."""
        attributes = Attributes(
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
        await self._authorization.require(attributes)


def _certificate(request: web.BaseRequest) -> DistinguishedName:
    transport = request.transport
    shown = transport.get_extra_info("peercert") if transport is not None else None
    subject: DistinguishedName = shown["subject"] if shown else ()
    return subject

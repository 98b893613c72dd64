"""The user that a request is made as, by its credentials or by impersonation, and whether the user may make it."""

from collections.abc import Awaitable
from typing import Final

from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.chain import ANONYMOUS
from mockube.apiserver.authn.credentials import PresentedCredentials, token_of_subprotocols
from mockube.apiserver.authz.chain import Decision, forbidden
from mockube.apiserver.request import impersonation
from mockube.apiserver.request.filter import Config, Handle
from mockube.apiserver.request.request import AUTHORIZATION, SUBPROTOCOL, Request
from mockube.apiserver.request.response import Response, error_response

_IMPERSONATE: Final = "impersonate-"
_INITIALS: Final = "Ii"


def with_authentication(handle: Handle, config: Config) -> Handle:
    """Find the user, or refuse with Unauthorized."""
    authentication, observer = config.authentication, config.observer

    async def filter_(request: Request) -> Response:
        try:
            info = request.info
            user = await authentication.authenticate(_presented(request), info.verb, info.path)
        except Unauthorized as error:
            response = error_response(error, request)
            observer.reject(request, response)
            return response
        request.user = request.authenticated = user
        if user is not ANONYMOUS:
            request.client.set_authenticated()
        return await handle(request)

    return filter_


def _presented(request: Request) -> PresentedCredentials:
    subject, end, digest = request.client.certificate
    token = ""
    if SUBPROTOCOL in request.headers and request.is_websocket:
        token, _ = token_of_subprotocols(request.subprotocols)
    return PresentedCredentials(request.header(AUTHORIZATION), subject, end, digest, token)


def with_impersonation(handle: Handle, config: Config) -> Handle:
    """Replace the user by the one that the Impersonate headers name, or refuse with Forbidden or BadRequest."""
    impersonator = impersonation.Impersonator(config.authorization)

    async def impersonated(request: Request) -> Response:
        wanted = impersonation.read(
            [(name.lower(), request.text(value)) for name, value in request.headers.items()]
        )
        if wanted is not None:
            request.impersonated = impersonator.impersonate(request.attributes(), wanted)
            request.user = request.impersonated.user
        return await handle(request)

    def filter_(request: Request) -> Awaitable[Response]:
        for name in request.headers:
            if name[0] in _INITIALS and name[: len(_IMPERSONATE)].lower() == _IMPERSONATE:
                return impersonated(request)
        return handle(request)

    return filter_


def with_authorization(handle: Handle, config: Config) -> Handle:
    """Refuse with Forbidden what no authorizer allows; note the decision for the audit log."""
    authorization = config.authorization

    async def filter_(request: Request) -> Response:
        attributes = request.attributes()
        decision, reason = request.decision = await authorization.authorize(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)
        return await handle(request)

    return filter_

"""Authentication, impersonation and authorization of requests."""

import logging
from collections.abc import Awaitable
from functools import partial
from typing import Final

from multidict import CIMultiDict, MultiMapping

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.status import ApiError, Unauthorized
from mockube.apiserver.authn.authenticators import PresentedCredentials, TokenDetails, token_of_subprotocols
from mockube.apiserver.authn.request_headers import RequestHeaders
from mockube.apiserver.authz.chain import AuthorizerFailed, Decision, forbidden, retry_decision
from mockube.apiserver.metrics import access as results
from mockube.apiserver.user import ANONYMOUS

from . import impersonation
from .error_responses import error_response, internal_error, refusal
from .filter import FilterConfig, Handle
from .request import AUTHORIZATION, SUBPROTOCOL, Request
from .response import Response, warning_headers

LOG: Final = logging.getLogger(__name__)
_IMPERSONATE: Final = "impersonate-"


def with_authentication(handle: Handle, config: FilterConfig) -> Handle:
    """Authenticate the request, or refuse it with Unauthorized."""
    authentication, observer, proxy = config.authentication, config.observer, config.request_headers
    access = config.access
    monotonic = access.monotonic

    async def filter_(request: Request) -> Response:
        began = monotonic()
        presented = _presented_credentials(request, proxy)
        try:
            info = request.info
            user = await authentication.authenticate(presented, info.verb, info.path)
        except Unauthorized as error:
            result = results.ERROR if presented.authorization or presented.certificates else results.FAILURE
            access.authentication[result].observe(monotonic() - began)
            response = error_response(error, request)
            observer.reject(request, response)
            return response
        access.record_user(user.name, began)
        request.user = request.authenticated = user
        if presented.notes:
            _annotate(presented.notes[-1], request)
        if proxy is not None:
            request.headers = _without_users(request.headers, proxy)
        if user is not ANONYMOUS:
            request.client.set_authenticated()
        return await handle(request)

    return filter_


def _annotate(notes: TokenDetails, request: Request) -> None:
    """Add the notes of a token to the request, to its audit annotations and to the warnings of the response."""
    request.credentials_end = notes.end
    request.annotations.update(notes.annotations)
    if notes.warnings:
        request.client.head += b"".join(warning_headers(notes.warnings)).decode()


def _presented_credentials(request: Request, proxy: RequestHeaders | None) -> PresentedCredentials:
    certificates, proxied = request.client.certificates, None
    if certificates is not None and proxy is not None:
        proxied = proxy.user_of((name, request.text(value)) for name, value in request.headers.items())
    token = ""
    if SUBPROTOCOL in request.headers and request.is_websocket:
        token, _ = token_of_subprotocols(request.subprotocols)
    authorization = request.header(AUTHORIZATION)
    return PresentedCredentials(authorization, certificates, token, proxied)


def _without_users(headers: MultiMapping[str], proxy: RequestHeaders) -> MultiMapping[str]:
    """Return the headers without those in which front proxies send users."""
    if not any(proxy.is_own(name) for name in headers):
        return headers
    return CIMultiDict((name, value) for name, value in headers.items() if not proxy.is_own(name))


def with_impersonation(handle: Handle, config: FilterConfig) -> Handle:
    """Set the user that the Impersonate headers name, or refuse the request with Forbidden or BadRequest."""
    impersonator = impersonation.Impersonator(
        config.authorization,
        config.access.impersonation,
        config.access.monotonic,
        constrained=config.constrained_impersonation,
    )

    async def handle_impersonation(request: Request) -> Response:
        requested_user = requested_impersonation(request)
        if requested_user is not None:
            impersonate = partial(impersonator.impersonate, request.attributes(), requested_user)
            try:
                request.impersonated = await retry_decision(impersonate)
            except ApiError as error:
                return refusal(error, request)
            request.user = request.impersonated.user
        return await handle(request)

    def filter_(request: Request) -> Awaitable[Response]:
        # Few requests have such a header: all names at once are searched.
        if _IMPERSONATE in "\n".join(request.headers).lower():
            return handle_impersonation(request)
        return handle(request)

    return filter_


def requested_impersonation(request: Request) -> impersonation.Impersonation | None:
    """Return the impersonation that the headers of a request name; None if it has no such header."""
    return impersonation.read(
        [(name.lower(), request.text(value)) for name, value in request.headers.items()]
    )


def with_authorization(handle: Handle, config: FilterConfig) -> Handle:
    """Refuse a request with Forbidden unless an authorizer allows it; store the decision for the audit log."""
    authorization, durations = config.authorization, config.access.authorization
    monotonic, allowed = config.access.monotonic, durations[results.ALLOWED]

    async def filter_(request: Request) -> Response:
        attributes = request.attributes()
        began = monotonic()
        try:
            decision, reason = request.decision = await authorization.authorize(attributes)
        except AuthorizerFailed as error:
            durations[results.ERROR].observe(monotonic() - began)
            request.decision = error.decision, error.reason
            LOG.error('"Unable to authorize the request" err=%s', quote(str(error)))  # noqa: TRY400 - not a bug
            return internal_error(request, str(error))
        seconds = monotonic() - began
        if decision is not Decision.ALLOW:
            durations[results.DENIED if decision is Decision.DENY else results.UNDECIDED].observe(seconds)
            return refusal(forbidden(attributes, reason), request)
        allowed.observe(seconds)
        return await handle(request)

    return filter_

"""Serve OpenAPI documents, which clients cache by hash, and OpenID Connect discovery of service account tokens."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final

import orjson

from mockube.apiserver.authn.serviceaccount.tokens import ServiceAccounts
from mockube.apiserver.event_loop import LARGE, Worker
from mockube.apiserver.metrics.requests import Route
from mockube.apiserver.openapi import gnostic, gnostic_v3
from mockube.apiserver.openapi.documents import Documents
from mockube.apiserver.wire.negotiation import parse_accept
from mockube.component_base.clock import Clock

from .content import Content, http_date, serve_content
from .page import Page, Pages
from .request import ACCEPT, Request
from .response import JSON, NOT_CACHED, Response
from .routes import get_only

PROTOBUF_2: Final = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", gnostic.MEDIA_TYPE)
PROTOBUF_3: Final = (gnostic_v3.MEDIA_TYPE, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
IMMUTABLE_CACHE_CONTROL: Final = "public, immutable"
OPENAPI_INDEX: Final = Route(component="", subresource="openapi/v3")
OPENAPI_DOCUMENT: Final = Route(component="", subresource="openapi/v3/")
YEAR: Final = timedelta(days=365)
_SECOND: Final = timedelta(seconds=1)


def openapi_pages(documents: Documents, worker: Worker, clock: Clock) -> Pages:
    """Return the pages of OpenAPI documents.

    Documents are built only in the worker's thread: with many definitions they are large, and their cached properties
    have locks, which must not block the event loop.
    """
    modified = clock.now()
    pages = {
        "/openapi/v2": _v2(documents, worker, modified),
        "/openapi/v3": _v3_index(documents, worker, clock),
    }
    for folder in documents.folders:
        pages[f"/openapi/v3/{folder}"] = _hashed_page(documents, folder, worker, clock)
    return pages


def wanted_type(accept: str, available: Sequence[str]) -> str | None:
    """Return the first media type that a clause covers, whatever its parameters; None if there is none."""
    for clause in parse_accept(accept or "*/*"):
        for media_type in available:
            kind, _, subtype = media_type.partition("/")
            if clause.type in ("*", kind) and clause.subtype in ("*", subtype):
                return media_type
    return None


def _not_acceptable(vary: str) -> Response:
    return Response(406, (), "", headers={**NOT_CACHED, "Vary": vary})


def _v2(documents: Documents, worker: Worker, modified: datetime) -> Page:
    available, both = (JSON, *PROTOBUF_2), "Accept-Encoding, Accept"

    async def page(request: Request) -> Response:
        media_type = wanted_type(request.header(ACCEPT), available)
        if media_type is None:
            return _not_acceptable(both)
        protobuf = media_type != JSON
        body, digest = await worker.run(LARGE, partial(documents.v2, protobuf=protobuf))
        content_type = gnostic.MEDIA_TYPE if protobuf else JSON
        content = Content(body=body, content_type=content_type, modified=modified, etag=f'"{digest}"')
        compressed = request.accepts_gzip and not request.header("Range")
        headers = {**NOT_CACHED, "Vary": "Accept" if compressed else both}
        response = serve_content(request, content, headers)
        response.compressed = compressed and response.status == HTTPStatus.OK
        return response

    return page


def _v3_index(documents: Documents, worker: Worker, clock: Clock) -> Page:
    async def page(request: Request) -> Response:
        request.route = OPENAPI_INDEX
        body, _ = await worker.run(LARGE, documents.index)
        # As upstream, the index is JSON with a content type of text, and is modified at the time of each request. So a
        # client that requests it again within a second, the precision of the header, does not get 304.
        now = clock.now()
        content = Content(body=body, content_type="text/plain; charset=utf-8", modified=now + _SECOND)
        response = serve_content(request, content)
        if response.status != HTTPStatus.NOT_MODIFIED:
            response.headers = {**response.headers, "Last-Modified": http_date(now)}
        return response

    return page


def _hashed_page(documents: Documents, folder: str, worker: Worker, clock: Clock) -> Page:
    """Return a page of a document; a request with its hash may be cached for ever."""
    modified = clock.now()

    async def page(request: Request) -> Response:
        request.route = OPENAPI_DOCUMENT
        if not parse_accept(request.header(ACCEPT) or "*/*"):
            return Response(200, (), "", headers={**NOT_CACHED, "Vary": "Accept"})
        media_type = wanted_type(request.header(ACCEPT), (JSON, *PROTOBUF_3))
        if media_type is None:
            return _not_acceptable("Accept")
        protobuf = media_type != JSON
        content_type = gnostic_v3.MEDIA_TYPE if protobuf else JSON
        requested_hash = request.query.get("hash", ("",))[0]
        body, digest = await worker.run(LARGE, partial(documents.v3, folder, protobuf=protobuf))
        headers = {**NOT_CACHED, "Vary": "Accept"}
        if requested_hash and requested_hash != digest:
            hashed_url = f"/openapi/v3/{folder}?hash={digest}"
            headers |= {"Location": hashed_url, "Content-Type": content_type, "Etag": f'"{digest}"'}
            return Response(301, headers=headers)
        if requested_hash:
            expires = (clock.now() + YEAR).strftime("%a, %d %b %Y %H:%M:%S UTC")
            headers |= {"Cache-Control": IMMUTABLE_CACHE_CONTROL, "Expires": expires}
        content = Content(body=body, content_type=content_type, modified=modified, etag=f'"{digest}"')
        return serve_content(request, content, headers)

    return page


CONFIGURATION, JWKS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


def openid_pages(accounts: ServiceAccounts, *, address: Callable[[], str]) -> Pages:
    def configuration() -> Mapping[str, Any]:
        return {
            "issuer": accounts.issuer,
            "jwks_uri": f"https://{address()}{JWKS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": accounts.keys.algorithms(),
        }

    return {
        CONFIGURATION: _page(lambda: orjson.dumps(configuration()), JSON),
        # Its document is made for the first request, because that imports a library.
        JWKS: _page(cache(lambda: orjson.dumps(accounts.keys.jwks())), "application/jwk-set+json"),
    }


def _page(body: Callable[[], bytes], content_type: str) -> Page:
    async def page(_request: Request) -> Response:
        return Response(200, [body()], content_type, headers=_HEADERS)

    return get_only(page, (content_type,))

"""OpenAPI documents over HTTP, and OpenID Connect discovery of service account tokens: cached by hash."""

from functools import partial

import orjson

from mockube.apiserver.authn.serviceaccount.accounts import ServiceAccounts
from mockube.apiserver.long_work import LARGE, Worker
from mockube.apiserver.openapi import gnostic
from mockube.apiserver.openapi.documents import Documents
from mockube.apiserver.request.compression import MIN_SIZE, takes_gzip
from mockube.apiserver.request.health import Page, Pages
from mockube.apiserver.request.pages import get_only
from mockube.apiserver.request.request import ACCEPT, Request
from mockube.apiserver.request.response import JSON, Response

PROTOBUF = "application/com.github.proto-openapi"
FOR_EVER = "public, max-age=31536000, immutable"


def openapi_pages(documents: Documents, worker: Worker) -> Pages:
    """Documents are made in the thread of the worker alone: many definitions make them large, and their properties
    have locks that an event loop must not wait for.
    """
    pages = {"/openapi/v2": _v2(documents, worker), "/openapi/v3": _v3_index(documents, worker)}
    for folder in documents.folders:
        pages[f"/openapi/v3/{folder}"] = _hashed(documents, folder, worker)
    return pages


def _v2(documents: Documents, worker: Worker) -> Page:
    async def page(request: Request) -> Response:
        protobuf = PROTOBUF in request.header(ACCEPT)
        body, digest = await worker.run(LARGE, partial(documents.v2, protobuf=protobuf))
        content_type = gnostic.MEDIA_TYPE if protobuf else JSON
        return _answer(request, body, digest, "no-cache, private", content_type)

    return page


def _v3_index(documents: Documents, worker: Worker) -> Page:
    async def page(request: Request) -> Response:
        body, digest = await worker.run(LARGE, documents.index)
        # As upstream: its index is JSON that is said to be text.
        return _answer(request, body, digest, "no-cache, private", "text/plain; charset=utf-8")

    return page


def _hashed(documents: Documents, folder: str, worker: Worker) -> Page:
    """A document that may be asked for by its hash, and then never changes."""

    async def page(request: Request) -> Response:
        asked = request.query.get("hash", ("",))[0]
        body, digest = await worker.run(LARGE, documents.v3, folder)
        if asked and asked != digest:
            return Response(301, headers={"Location": f"/openapi/v3/{folder}?hash={digest}"})
        return _answer(request, body, digest, FOR_EVER if asked else "no-cache, private")

    return page


def _answer(request: Request, body: bytes, digest: str, keep: str, content_type: str = JSON) -> Response:
    etag = f'"{digest}"'
    headers = {"ETag": etag, "Cache-Control": keep, "Vary": "Accept"}
    if request.header("If-None-Match") == etag:
        return Response(304, headers=headers)
    response = Response(200, [body], content_type, headers=headers)
    response.compressed = response.size > MIN_SIZE and takes_gzip(request)
    return response


CONFIGURATION, JWKS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


def openid_pages(accounts: ServiceAccounts, *, address: str) -> Pages:
    configuration = {
        "issuer": accounts.issuer,
        "jwks_uri": f"https://{address}{JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": accounts.keys.algorithms(),
    }
    return {
        CONFIGURATION: _page(orjson.dumps(configuration), JSON),
        JWKS: _page(orjson.dumps(accounts.keys.jwks()), "application/jwk-set+json"),
    }


def _page(body: bytes, content_type: str) -> Page:
    async def page(_request: Request) -> Response:
        return Response(200, [body], content_type, headers=_HEADERS)

    return get_only(page)

"""OpenAPI documents over HTTP, and OpenID Connect discovery of service account tokens: cached by hash."""

from collections.abc import Mapping
from functools import partial

import orjson
from aiohttp import web

from mockube.apiserver.authn.serviceaccount.accounts import ServiceAccounts
from mockube.apiserver.http.pages import Page, get_only
from mockube.apiserver.openapi import gnostic
from mockube.apiserver.openapi.documents import Documents
from mockube.apiserver.turns import LARGE, Worker

PROTOBUF = "application/com.github.proto-openapi"
FOR_EVER = "public, max-age=31536000, immutable"


def openapi_pages(documents: Documents, worker: Worker) -> Mapping[str, Page]:
    """Documents are made in the thread of the worker alone: many definitions make them large, and their properties
    have locks that an event loop must not wait for.
    """
    pages = {"/openapi/v2": _v2(documents, worker), "/openapi/v3": _v3_index(documents, worker)}
    for folder in documents.folders:
        pages[f"/openapi/v3/{folder}"] = _hashed(documents, folder, worker)
    return pages


def _v2(documents: Documents, worker: Worker) -> Page:
    async def page(request: web.BaseRequest) -> web.Response:
        protobuf = PROTOBUF in request.headers.get("Accept", "")
        body, digest = await worker.run(LARGE, partial(documents.v2, protobuf=protobuf))
        content_type = gnostic.MEDIA_TYPE if protobuf else "application/json"
        return _answer(request, body, digest, "no-cache, private", content_type)

    return page


def _v3_index(documents: Documents, worker: Worker) -> Page:
    async def page(request: web.BaseRequest) -> web.Response:
        body, digest = await worker.run(LARGE, documents.index)
        return _answer(request, body, digest, "no-cache, private")

    return page


def _hashed(documents: Documents, folder: str, worker: Worker) -> Page:
    """A document that may be asked for by its hash, and then never changes."""

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        asked = request.query.get("hash", "")
        body, digest = await worker.run(LARGE, documents.v3, folder)
        if asked and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{folder}?hash={digest}"})
        return _answer(request, body, digest, FOR_EVER if asked else "no-cache, private")

    return page


def _answer(
    request: web.BaseRequest, body: bytes, digest: str, keep: str, content_type: str = "application/json"
) -> web.Response:
    etag = f'"{digest}"'
    headers = {"ETag": etag, "Cache-Control": keep, "Vary": "Accept"}
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    response = web.Response(
        body=body, headers=headers | {"Content-Type": content_type}, zlib_executor_size=LARGE
    )
    response.enable_compression()
    return response


CONFIGURATION, JWKS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


def openid_pages(accounts: ServiceAccounts, *, address: str) -> Mapping[str, Page]:
    configuration = {
        "issuer": accounts.issuer,
        "jwks_uri": f"https://{address}{JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": accounts.keys.algorithms(),
    }
    return {
        CONFIGURATION: _page(orjson.dumps(configuration), "application/json"),
        JWKS: _page(orjson.dumps(accounts.keys.jwks()), "application/jwk-set+json"),
    }


def _page(body: bytes, content_type: str) -> Page:
    async def page(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type=content_type, headers=_HEADERS)

    return get_only(page)

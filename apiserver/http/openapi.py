"""OpenAPI over HTTP: documents that clients keep as long as their hash stays the same."""

import hashlib
from collections.abc import Mapping

from aiohttp import web

from apiserver.discovery.openapi import gnostic
from apiserver.discovery.openapi.documents import Documents
from apiserver.http.pages import Page

PROTOBUF = "application/com.github.proto-openapi"
FOR_EVER = "public, max-age=31536000, immutable"


def openapi_pages(documents: Documents) -> Mapping[str, Page]:
    pages = {"/openapi/v2": _v2(documents), "/openapi/v3": _v3_index(documents)}
    for folder in documents.folders:
        pages[f"/openapi/v3/{folder}"] = _hashed(documents, folder)
    return pages


def _v2(documents: Documents) -> Page:
    async def page(request: web.BaseRequest) -> web.Response:
        protobuf = PROTOBUF in request.headers.get("Accept", "")
        body = documents.v2_protobuf if protobuf else documents.v2
        content_type = gnostic.MEDIA_TYPE if protobuf else "application/json"
        return _answer(request, body, _digest(body), "no-cache, private", content_type)

    return page


def _v3_index(documents: Documents) -> Page:
    async def page(request: web.BaseRequest) -> web.Response:
        return _answer(request, documents.index, _digest(documents.index), "no-cache, private")

    return page


def _hashed(documents: Documents, folder: str) -> Page:
    """A document that may be asked for by its hash, and then never changes."""

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        asked, digest = request.query.get("hash", ""), documents.hash(folder)
        if asked and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{folder}?hash={digest}"})
        return _answer(request, documents.v3(folder), digest, FOR_EVER if asked else "no-cache, private")

    return page


def _digest(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _answer(
    request: web.BaseRequest, body: bytes, digest: str, keep: str, content_type: str = "application/json"
) -> web.Response:
    etag = f'"{digest}"'
    headers = {"ETag": etag, "Cache-Control": keep, "Vary": "Accept"}
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    response = web.Response(body=body, headers=headers | {"Content-Type": content_type})
    response.enable_compression()
    return response

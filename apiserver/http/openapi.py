"""OpenAPI over HTTP: documents that clients keep as long as their hash stays the same."""

import hashlib
from collections.abc import Callable, Mapping

from aiohttp import web

from apimachinery import status
from apiserver.discovery.openapi.documents import Documents
from apiserver.http.pages import Page

PROTOBUF = "application/com.github.proto-openapi"
FOR_EVER = "public, max-age=31536000, immutable"


def openapi_pages(documents: Documents) -> Mapping[str, Page]:
    pages = {"/openapi/v2": _page(lambda: documents.v2), "/openapi/v3": _page(lambda: documents.index)}
    for folder in documents.folders:
        pages[f"/openapi/v3/{folder}"] = _hashed(documents, folder)
    return pages


def _page(text: Callable[[], bytes]) -> Page:
    async def page(request: web.BaseRequest) -> web.Response:
        body = text()
        return _answer(request, body, hashlib.sha512(body).hexdigest().upper(), "no-cache, private")

    return page


def _hashed(documents: Documents, folder: str) -> Page:
    """A document that may be asked for by its hash, and then never changes."""

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        asked, digest = request.query.get("hash", ""), documents.hash(folder)
        if asked and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{folder}?hash={digest}"})
        return _answer(request, documents.v3(folder), digest, FOR_EVER if asked else "no-cache, private")

    return page


def _answer(request: web.BaseRequest, body: bytes, digest: str, keep: str) -> web.Response:
    etag = f'"{digest}"'
    headers = {"ETag": etag, "Cache-Control": keep, "Vary": "Accept"}
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    accept = request.headers.get("Accept", "*/*")
    if PROTOBUF in accept and "json" not in accept:
        raise status.not_acceptable(["application/json"])
    response = web.Response(body=body, content_type="application/json", headers=headers)
    response.enable_compression()
    return response

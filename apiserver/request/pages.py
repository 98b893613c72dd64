"""The pages of discovery and of the version, and the index of all paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import NotAcceptable
from mockube.apiserver.aggregation.merging import NO_OTHERS, OtherGroups
from mockube.apiserver.discovery import aggregated, legacy
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.metrics.requests import Route
from mockube.apiserver.wire.frames import encode_object
from mockube.apiserver.wire.negotiation import (
    DISCOVERY_VERSIONS,
    FORMATS,
    EndpointType,
    MediaType,
    OutputFormat,
    negotiate,
)
from mockube.component_base.version import version_document

from .health import is_own_check
from .page import Page, Pages
from .request import ACCEPT, Request
from .response import MIN_COMPRESSED_SIZE, Parts, Response, json_body
from .routes import NOT_ACCEPTABLE, get_only

_DOCUMENTS: Final = "/openapi/v3/"
_UNLISTED: Final = ("/debug/", "/mockube/")


class RenewedPages(Mapping[str, Page]):
    """Pages that are built again at the first request after their content was outdated."""

    def __init__(self, make: Callable[[], Pages], refresh: Callable[[], None] | None = None) -> None:
        """Create pages; `refresh` is called before each use, and may invalidate them."""
        self._make = make
        self._refresh = refresh
        self._pages: Pages | None = None

    def invalidate(self) -> None:
        self._pages = None

    def __getitem__(self, path: str) -> Page:
        return self._build_pages()[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._build_pages())

    def __len__(self) -> int:
        return len(self._build_pages())

    def _build_pages(self) -> Pages:
        if self._refresh is not None:
            self._refresh()
        if self._pages is None:
            self._pages = self._make()
        return self._pages


def api_pages(
    groups: Iterable[Group],
    *,
    address: Callable[[], str],
    others: OtherGroups = NO_OTHERS,
    minor: str = minors.NEWEST,
    git_version: str = "",
) -> Pages:
    """Return the discovery pages; `address` returns that of the server, and `others` are the groups that other servers serve too."""
    groups, endpoint = list(groups), aggregated.endpoint(minor)
    core = [group for group in groups if not group.name]
    named = others.merge([group for group in groups if group.name])
    items = aggregated.items_of_minor([group.aggregated_form(others.documents) for group in named], minor)
    own = aggregated.items_of_minor(aggregated.discovery_items(core), minor)
    versions = _negotiated_page("api", _core_versions(address), own, endpoint)
    all_groups = document(legacy.group_list(group.legacy_form() for group in named))
    pages: dict[str, Page] = {
        "/api": get_only(versions, consumed=FORMATS),
        "/apis": _negotiated_page("apis", all_groups, items, endpoint),
        "/apis/": all_groups,  # as upstream, which has no aggregated discovery at this path
        "/version": get_only(
            raw_document(version_document(minor, git_version)), (MediaType.JSON,), (MediaType.JSON,)
        ),
    }
    for merged in named:
        page = document(legacy.group(merged.legacy_form()))
        is_routed = merged.name == _AGGREGATOR_GROUP
        pages[f"/apis/{merged.name}"] = get_only(page, consumed=FORMATS) if is_routed else page
    for group in groups:
        folder = f"/apis/{group.name}" if group.name else "/api"
        is_custom = any(row.custom for row in group.resources)
        for name in group.versions:
            page = document(legacy.resource_list(group, name))
            pages[f"{folder}/{name}"] = page if is_custom else get_only(page, consumed=FORMATS)
    return pages


def _core_versions(address: Callable[[], str]) -> Page:
    async def page(request: Request) -> Response:
        return await document(legacy.core_versions(address()))(request)

    return page


_AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
"""The group that upstream's aggregator serves itself."""


def with_index(pages: Pages) -> Pages:
    """Return the pages with an index of the paths that upstream has."""
    listed = (path for path in pages if not path.startswith(_UNLISTED) and not is_own_check(path))
    paths = {*map(_index_path, listed), "/apis/"}
    index = raw_document({"paths": sorted(paths)})
    return {**pages, "/": index, "/index.html": index}


def _index_path(path: str) -> str:
    """Return the path for the index: OpenAPI documents are listed by their folder only."""
    return _DOCUMENTS if path.startswith(_DOCUMENTS) else path


def raw_document(tree: Any) -> Page:
    """Return a page with constant content, in indented JSON regardless of the Accept header."""
    body = json_body([orjson.dumps(tree)], pretty=True)

    async def page(_request: Request) -> Response:
        return Response(200, body)

    return page


def document(tree: Any) -> Page:
    """Return a page with constant content, in a format of the Accept header."""
    bodies = _Bodies(tree)

    async def page(request: Request) -> Response:
        output = negotiate(request.header(ACCEPT), EndpointType.PLAIN)
        if output is None:
            raise NotAcceptable(NOT_ACCEPTABLE)
        return Response(200, bodies.of(request, output), output.format.value)

    return page


class _Bodies:
    """Encodes a tree, and caches the bytes of each format."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._bodies: dict[tuple[MediaType, bool], Parts] = {}

    def of(self, request: Request, output: OutputFormat) -> Parts:
        is_json = output.format is MediaType.JSON
        pretty = is_json and (output.pretty or request.wants_pretty)
        body = self._bodies.get((output.format, pretty))
        if body is None:
            text = encode_object(self._tree, output.format)
            body = json_body([text], pretty=pretty) if is_json else [text]
            self._bodies[output.format, pretty] = body
        return body


def _negotiated_page(path: str, alone: Page, items: Sequence[Any], endpoint: EndpointType) -> Page:
    """Return a page with aggregated discovery if the Accept header requests it, otherwise the given page."""
    trees = {name: aggregated.discovery(items, name) for name in DISCOVERY_VERSIONS[endpoint]}
    all_bodies = {name: _Bodies(tree) for name, tree in trees.items()}
    etag, route = aggregated.etag(items), Route(subresource=path)

    async def page(request: Request) -> Response:
        output = negotiate(request.header(ACCEPT), endpoint) if request.header(ACCEPT) else None
        if output is None:
            return await alone(request)
        request.route = route
        bodies = all_bodies[output.version]
        headers = {"Etag": etag, "Vary": "Accept", "Cache-Control": "public"}
        if request.header("If-None-Match") == etag:
            return Response(304, headers=headers)
        kind = f"{output.format};g=apidiscovery.k8s.io;v={output.version};as=APIGroupDiscoveryList"
        response = Response(200, bodies.of(request, output), kind, headers=headers)
        response.compressed = response.size > MIN_COMPRESSED_SIZE and request.accepts_gzip
        return response

    return page

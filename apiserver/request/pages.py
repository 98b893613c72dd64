"""What is served besides objects: discovery, version, health, and an index of it all."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric

from mockube.apimachinery.status import Details, MethodNotSupported, NotAcceptable
from mockube.apiserver.aggregation.merging import NO_OTHERS, OtherGroups
from mockube.apiserver.discovery import aggregated, legacy
from mockube.apiserver.discovery import legacy as version
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.request.health import Check, Page, Pages, health_pages
from mockube.apiserver.request.request import ACCEPT, Request
from mockube.apiserver.request.response import Response, json_body
from mockube.apiserver.wire.negotiation import Format

NOT_ALLOWED = "the server does not allow this method on the requested resource"
_PLAIN = frozenset(
    {"application/json", "application/*", "*/*", "application/yaml", *(one.value for one in Format)}
)
_NOT_ACCEPTABLE = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
_DOCUMENTS = "/openapi/v3/"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


class Renewed(Mapping[str, Page]):
    """Pages that are made anew when they are asked for after what they tell of has changed."""

    def __init__(self, make: Callable[[], Pages]) -> None:
        self._make = make
        self._made: Pages | None = None

    def outdate(self) -> None:
        self._made = None

    def __getitem__(self, path: str) -> Page:
        return self._current()[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    def _current(self) -> Pages:
        if self._made is None:
            self._made = self._make()
        return self._made


def api_pages(
    groups: Iterable[Group], checks: Mapping[str, Check], *, address: str, others: OtherGroups = NO_OTHERS
) -> Pages:
    """`address` is where clients find the server, `others` the groups that other servers have a part in."""
    groups = list(groups)
    core = [group for group in groups if not group.name]
    named = others.merged([group for group in groups if group.name])
    items = [group.whole(others.documents) for group in named]
    pages: dict[str, Page] = {
        "/api": get_only(_either(legacy.core_versions(address), aggregated.discovery_items(core))),
        "/apis": _either(legacy.group_list(group.plain() for group in named), items),
        "/version": get_only(document(version.DOCUMENT, pretty=True)),
        **health_pages(checks),
    }
    for merged in named:
        pages[f"/apis/{merged.name}"] = document(legacy.group(merged.plain()))
    for group in groups:
        folder = f"/apis/{group.name}" if group.name else "/api"
        for name in group.versions:
            pages[f"{folder}/{name}"] = get_only(document(legacy.resource_list(group, name)))
    return pages


def with_index(pages: Pages) -> Pages:
    """The same, and one that names them."""
    return {**pages, "/": document({"paths": sorted({_listed(path) for path in pages})}, pretty=True)}


def _listed(path: str) -> str:
    """Of many documents in one folder only the folder is named."""
    return _DOCUMENTS if path.startswith(_DOCUMENTS) else path


def metrics_page(registry: CollectorRegistry) -> Page:
    """What Prometheus reads. Samples are collected in one go, and become text in a thread."""

    async def page(_request: Request) -> Response:
        text = await asyncio.to_thread(generate_latest, _Collected(registry))
        return Response(200, [text], CONTENT_TYPE_LATEST, headers={})

    return page


class _Collected(CollectorRegistry):
    """All metrics of a registry at one moment."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._metrics = list(registry.collect())

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def get_only(page: Page) -> Page:
    """The page for GET, and 405 for every other method; pages without this take any, as upstream's do."""

    async def served(request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotSupported(NOT_ALLOWED, Details())
        return await page(request)

    return served


def document(tree: Any, *, pretty: bool = False) -> Page:
    """A page that always says the same, indented if it is always so or for a client that wants it so."""
    text = orjson.dumps(tree)
    plain, indented = (json_body([text], pretty=each) for each in (False, True))

    async def page(request: Request) -> Response:
        return Response(200, indented if pretty or request.wants_pretty else plain)

    return page


def _either(plain: Any, items: Sequence[Any]) -> Page:
    """Discovery as the client asks for it: of this level alone, or of everything below at once."""
    alone = document(plain)
    whole = {name: orjson.dumps(aggregated.discovery(items, name)) + b"\n" for name in aggregated.VERSIONS}

    async def page(request: Request) -> Response:
        name = _aggregated_version(request.header(ACCEPT))
        if not name:
            return await alone(request)
        body = whole[name]
        etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "public"}
        if request.header("If-None-Match") == etag:
            return Response(304, headers=headers)
        return Response(200, [body], _AGGREGATED.format(version=name), headers=headers)

    return page


def _aggregated_version(accept: str) -> str:
    """The first version of aggregated discovery that the client takes; "" if it takes the plain document before."""
    for clause in accept.split(","):
        media_type, *pairs = (part.strip() for part in clause.split(";"))
        parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if parameters.get("as") == "APIGroupDiscoveryList" and parameters.get("v") in aggregated.VERSIONS:
            return parameters["v"]
        if media_type in _PLAIN and "as" not in parameters:
            return ""
    if "as=" in accept:
        raise NotAcceptable(_NOT_ACCEPTABLE, Details())
    return ""

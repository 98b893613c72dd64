"""The servers of moments of the past: the parts of a server that reads need, over the store as it was."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.bootstrap.apiservices import API_SERVICES
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.controller import DEFINITIONS, serve_established
from mockube.apiserver.customresources.conversion_webhook import ReviewDependencies
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.registry.moments import Moment, Moments, no_mark
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.handler import Handler
from mockube.apiserver.request.past import Past
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.storage.journal import Journal
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.clock import DatedClock
from mockube.etcd.kv import KV, Range, prefix_end
from mockube.etcd.past import PastKV

from . import requests
from .caches import ResourceCaches
from .catalog import make_catalog
from .environment import ServerEnvironment
from .outgoing import Outgoing, make_aggregator
from .pages import make_pages
from .registry import make_registry

PAGE = 1_000
"""The keys that are read at a time: old values are decompressed, which takes 0.1 ms each."""


class PresentParts(Struct, frozen=True, kw_only=True):
    """The parts of the present that the servers of moments share."""

    kv: KV
    registry: Registry
    reviews: ReviewDependencies
    rights: Rights
    outgoing: Outgoing
    proxy: ReverseProxy
    find: requests.FindResource
    handler: Callable[[], Handler]
    served_versions: Callable[[StoredObject], Sequence[CustomVersion]]
    """Returns the compiled versions of a definition that is the same now."""


class PastApiServer:
    """The server of one moment. It has no tasks, because nothing changes; the filters of the present lead to it."""

    def __init__(
        self,
        moment: Moment,
        config: Config,
        environment: ServerEnvironment,
        parts: PresentParts,
    ) -> None:
        config = _without_live_groups(config)
        if moment.time is not None:  # ages are those of then
            environment = replace(environment, clock=DatedClock(environment.clock, moment.time))
        self._served_versions = parts.served_versions
        self.catalog = catalog = make_catalog(config, parts.reviews)
        self.registry = registry = make_registry(
            config,
            environment,
            PastKV(parts.kv, moment.revision),
            catalog,
            parts.rights,
            parts.registry.admission,
            journal=Journal(environment.clock, max_entries=0),
        )
        self.caches = ResourceCaches(registry, catalog)
        aggregator = make_aggregator(
            config, environment, parts.outgoing, registry, catalog.rows[API_SERVICES]
        )
        self._find = aggregator.row_finder(catalog.rows)
        pages = make_pages(
            config,
            environment=environment,
            registry=registry,
            catalog=catalog,
            aggregator=aggregator,
            simulated=None,
            fixed={},
        )
        routes = requests.make_routes(
            config,
            catalog=catalog,
            aggregator=aggregator,
            proxy=parts.proxy,
            verbs={},
            pages=pages,
            simulated=None,
            control=None,
        )
        self._handler = requests.make_handler(
            registry, catalog, routes, replace(parts.handler().config, resources=self._find)
        )

    async def load(self) -> None:
        """Read the definitions, then all objects, which are decoded by these."""
        registry = self.registry
        row = registry.rows[DEFINITIONS]
        prefix = registry.layout.prefix(row)
        answer = await registry.kv.range(Range(key=prefix, range_end=prefix_end(prefix)))
        definitions = registry.readable(row, answer.kvs)
        await serve_established(registry, self.catalog, definitions, self._served_versions)
        await registry.watch_cache.load(PAGE)

    @property
    def object_count(self) -> int:
        return sum(map(len, self.registry.watch_cache.folders.caches()))

    async def serve(self, request: Request) -> Response:
        info = request.info
        if info.is_resource:
            request.resource = self._find(info.group, info.version, info.resource)
        return await self._handler.endpoints.serve(request)

    def end_streams(self) -> None:
        self._handler.watch_handler.end_all()


def make_past(
    config: Config, environment: ServerEnvironment, parts: PresentParts, moments: Moments | None
) -> Past:
    async def make_server(moment: Moment) -> PastApiServer:
        server = PastApiServer(moment, config, environment, parts)
        await server.load()
        return server

    moments = moments or Moments(parts.registry, no_mark)
    return Past(moments, make_server, present=lambda: parts.handler().endpoints, find=parts.find)


def _without_live_groups(config: Config) -> Config:
    """Return the configuration without the groups whose objects are not in the store: metrics and control."""
    return replace(
        config,
        features=replace(config.features, simulate_metrics=False),
        control=replace(config.control, control="off"),
    )

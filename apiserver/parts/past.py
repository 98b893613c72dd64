"""The servers of moments of the past: the parts of a server that reads need, over the store as it was."""

from msgspec import Struct
from msgspec.structs import replace

from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.controller import DEFINITIONS, serve_established
from mockube.apiserver.registry.moments import Moment, Moments
from mockube.apiserver.request.filter import FilterConfig
from mockube.apiserver.request.hooks import HookPoints
from mockube.apiserver.request.pages import with_index
from mockube.apiserver.request.past import Past
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.storage.journal import Journal
from mockube.component_base.clock import DatedClock
from mockube.etcd.kv import Range, prefix_end
from mockube.etcd.past import PastKV

from .aggregation import FindResource, make_aggregation
from .caches import ResourceCaches
from .catalog import make_catalog
from .context import ApiServerContext
from .metrics import no_metrics
from .outgoing import Outgoing
from .pages import make_pages
from .registry import Storage, make_registry
from .requests import make_handler, make_stored_routes

PAGE = 1_000
"""The keys that are read at a time: old values are decompressed, which takes 0.1 ms each."""


class PresentParts(Struct, frozen=True, kw_only=True):
    """The parts of the present that the servers of moments share."""

    context: ApiServerContext
    storage: Storage
    rights: Rights
    outgoing: Outgoing
    filters: FilterConfig


class PastApiServer:
    """The server of one moment. It has no tasks, because nothing changes; the filters of the present lead to it."""

    def __init__(self, moment: Moment, present: PresentParts) -> None:
        context = _context_of(moment, present.context)
        self._present, storage = present.storage, present.storage
        self.catalog = catalog = make_catalog(context.config)
        self.registry = registry = make_registry(
            context,
            catalog,
            present.rights,
            storage.registry.admission,
            Journal(context.clock, max_entries=0),
        )
        self.caches = ResourceCaches(registry, catalog)
        aggregation = make_aggregation(context, catalog, registry, present.outgoing)
        aggregator, self._find = aggregation.aggregator, aggregation.find
        pages = make_pages(context, catalog, aggregator, no_metrics(), with_index)
        routes = make_stored_routes(context, catalog, aggregator, present.outgoing, pages)
        filters = replace(present.filters, resources=self._find, hooks=context.hooks)
        self._handler = make_handler(registry, catalog, routes, filters)

    async def load(self) -> None:
        """Read the definitions, then all objects, which are decoded by these."""
        registry = self.registry
        row = registry.rows[DEFINITIONS]
        prefix = registry.layout.prefix(row)
        answer = await registry.kv.range(Range(key=prefix, range_end=prefix_end(prefix)))
        definitions = registry.readable(row, answer.kvs)
        present = self._present
        await serve_established(
            registry, self.catalog, present.reviews, definitions, present.definitions.served_versions
        )
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


def make_past(present: PresentParts, moments: Moments, find: FindResource) -> Past:
    async def make_server(moment: Moment) -> PastApiServer:
        server = PastApiServer(moment, present)
        await server.load()
        return server

    return Past(moments, make_server, find=find)


def _context_of(moment: Moment, present: ApiServerContext) -> ApiServerContext:
    """Return the context of the server of a moment, whose store cannot be written."""
    environment = present.environment
    if moment.time is not None:  # ages are those of then
        environment = replace(environment, clock=DatedClock(environment.clock, moment.time))
    return replace(
        present,
        config=_reading_config(present.config),
        environment=environment,
        kv=PastKV(present.kv, moment.revision),
        hooks=HookPoints(),
    )


def _reading_config(config: Config) -> Config:
    """Return the configuration without the groups whose objects are not in the store, metrics and control, and without traces."""
    return replace(
        config,
        features=replace(config.features, simulate_metrics=False),
        control=replace(config.control, control="off"),
        tracing=replace(config.tracing, tracing_config_file=None),
    )

"""An API server over a store: the list of its parts, in their order, and the order in which they start."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV

from .aggregation.registration import APIServiceRegistration
from .bootstrap.apiservices import API_SERVICES
from .bootstrap.endpoint_reconciler import ENDPOINT_SLICES
from .bootstrap.ensure import USER_AGENT
from .bootstrap.flow_schemas import FlowSchemaStatus
from .bootstrap.flowcontrol import FLOW_SCHEMAS, PRIORITY_LEVELS
from .bootstrap.rbac_hook import BootstrapRoles
from .config.command_line import Config
from .customresources.controller import DEFINITIONS
from .customresources.unreconciled import UnreconciledObjects
from .http.server import Server
from .parts.admission import make_admission
from .parts.aggregation import make_aggregation
from .parts.audit import make_audit
from .parts.authentication import make_authentication
from .parts.authorization import make_authorizers
from .parts.catalog import make_catalog
from .parts.context import make_context
from .parts.control import make_control
from .parts.environment import ServerEnvironment
from .parts.metrics import make_simulated_metrics, observe_parts
from .parts.observation import make_observation
from .parts.outgoing import make_outgoing
from .parts.pages import make_fixed_pages, make_pages
from .parts.past import PresentParts, make_past
from .parts.registry import make_storage
from .parts.requests import (
    make_filters,
    make_handler,
    make_observers,
    make_routes,
    make_stored_routes,
    make_verbs,
)


class ApiServer:
    """An API server over a store: `handler` handles requests, and `http` accepts connections."""

    def __init__(self, kv: KV, environment: ServerEnvironment, config: Config | None = None) -> None:
        self.context = context = make_context(config or Config(), environment, kv)
        self._outgoing = outgoing = make_outgoing(context)

        # What is served, who may do what, and over them the objects.
        self.catalog = catalog = make_catalog(context.config)
        self._authorizers = authorizers = make_authorizers(context, catalog, outgoing)
        rights = authorizers.rights
        self._admission = admission = make_admission(context, catalog, rights, outgoing)
        self.storage = storage = make_storage(context, catalog, rights, admission.chain, outgoing)
        self.registry = registry = storage.registry

        # What controls the server, who its users are, and other servers.
        self.observation = observation = make_observation(context, registry)
        self.control = control = make_control(
            context, registry, rights.rbac.policy, observation, admission.operators.reconciled
        )
        self._authentication = authentication = make_authentication(
            context, registry, outgoing, control.sessions
        )
        self.bootstrap_roles = BootstrapRoles(registry, registry.row, context.minor)
        aggregation = make_aggregation(context, catalog, registry, outgoing)
        self._aggregator = aggregator = aggregation.aggregator

        # What handles requests: filters, then the routes of resources, of pages and of the past.
        self._audit = audit = make_audit(context)
        observe_parts(context, storage, audit)
        observers = make_observers(context, rights, aggregation.find, audit, observation)
        filters = make_filters(context, registry, rights, authentication, observers, control)
        simulated = make_simulated_metrics(context, catalog, registry, aggregator)
        self._fixed_pages = fixed_pages = make_fixed_pages(
            context, registry, self.bootstrap_roles, authentication, control
        )
        pages = make_pages(context, catalog, aggregator, simulated, fixed_pages.add_to)
        present = PresentParts(
            context=context, storage=storage, rights=rights, outgoing=outgoing, filters=filters
        )
        self._past = past = make_past(present, control.moments, aggregation.find)
        verbs = make_verbs(context, rights, authentication, simulated, control)
        stored_routes = make_stored_routes(context, catalog, aggregator, outgoing, pages)
        routes = make_routes(stored_routes, verbs, simulated, control, past)
        self.handler = make_handler(registry, catalog, routes, filters)
        self.http = Server(self.handler.handle, clock=context.clock.real)
        self._running = AsyncExitStack()

    async def wait_definitions_served(self) -> None:
        """Wait until the kinds of all CustomResourceDefinitions that were created before this call are served."""
        await self.registry.watch_cache.fresh()
        await self.storage.definitions.wait_idle()

    def end_streams(self) -> None:
        """End watches, proxied streams and those of the clock, which do not end by themselves."""
        self.handler.watch_handler.end_all()
        self._outgoing.proxy.end_all()
        self._aggregator.proxy.end_all()
        self._fixed_pages.clock_streams.end_all()
        self._past.end_streams()

    async def __aenter__(self) -> Self:
        context = self.context
        async with AsyncExitStack() as stack:
            if context.traces is not None:
                context.traces.start()
                stack.push_async_callback(context.traces.close)
            if self._audit is not None:
                stack.callback(self._audit.close)
            self._outgoing.close_with(stack)
            stack.push_async_callback(self._aggregator.proxy.close)
            stack.push_async_callback(self.control.close)
            await stack.enter_async_context(context.supervisor.running())
            stack.push_async_callback(self._past.close)
            await self._start()
            self._running.push_async_exit(stack.pop_all())
        context.lifecycle.finish_start()
        return self

    async def _start(self) -> None:
        """Start the tasks: those that read the store, then those that follow what is in it."""
        context, storage, watch_cache = self.context, self.storage, self.registry.watch_cache
        start = context.supervisor.start
        if isinstance(context.kv, EmbeddedStore):
            start("store", context.kv.supervise)
        start("watch-cache", watch_cache.run)
        await watch_cache.progress.wait_listed()
        await self.control.start(context.supervisor, context.on_restored)
        self._authorizers.rights.watch(storage.caches.of, watch_cache)
        start("watch-cache-lag", watch_cache.lag.run)
        self._start_bootstrap_tasks()
        if self._authentication.issuers is not None:
            start("authentication-config", self._authentication.issuers.run)
        configured = self._authorizers.configured
        if configured is not None and configured.follows_file:
            start("authorization-config", configured.run)
        definitions = storage.definitions
        await definitions.catch_up()
        context.on_restored.append(definitions.wait_idle)
        start("crd-establishing", definitions.run)
        start("unreconciled-objects", UnreconciledObjects(self.registry, self._admission.operators).run)

    def _start_bootstrap_tasks(self) -> None:
        """Start the tasks that keep APIServices and FlowSchemas up to date."""
        context, registry = self.context, self.registry
        start, row = context.supervisor.start, registry.row
        aggregated = self.catalog.rows[API_SERVICES]
        others = self.catalog.rows["", "v1", "services"], row(ENDPOINT_SLICES)
        start("api-service-availability", self._aggregator.watch(aggregated, others, context.metrics).run)
        start("flow-schema-status", FlowSchemaStatus(registry, row(FLOW_SCHEMAS), row(PRIORITY_LEVELS)).run)
        definitions = registry.rows[DEFINITIONS]
        start(
            "api-service-registration",
            APIServiceRegistration(registry, definitions, aggregated, USER_AGENT).run,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._running.__aexit__(kind, error, trace)

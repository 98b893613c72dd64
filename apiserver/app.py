"""An API server over a store: the list of its parts, in their order, and the order in which they start."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from mockube.apimachinery.groups import GroupResource
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.task_supervisor import TaskSupervisor
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV

from .aggregation.registration import APIServiceRegistration
from .background_tasks import TASKS
from .bootstrap.apiservices import API_SERVICES
from .bootstrap.endpoint_reconciler import ENDPOINT_SLICES
from .bootstrap.ensure import USER_AGENT
from .bootstrap.flow_schemas import FlowSchemaStatus
from .bootstrap.flowcontrol import FLOW_SCHEMAS, PRIORITY_LEVELS
from .bootstrap.rbac_hook import BootstrapRoles
from .config.command_line import Config
from .customresources.catalog import GroupVersionResource
from .customresources.controller import DEFINITIONS, DefinitionController
from .customresources.conversion_webhook import ReviewDependencies
from .customresources.unreconciled import UnreconciledObjects
from .kinds.api_resource import Resource
from .metrics.admission import ConversionMetrics
from .metrics.measured_kv import MeasuredKV
from .metrics.storage import ConsistencyMetrics
from .parts import requests
from .parts.admission import make_admission, make_operators
from .parts.audit import make_audit
from .parts.authentication import make_authentication
from .parts.authorization import make_authorizers, make_rights
from .parts.caches import ResourceCaches
from .parts.catalog import make_catalog
from .parts.control import make_controls
from .parts.environment import ServerEnvironment
from .parts.health import make_health
from .parts.metrics import make_simulated_metrics, observe_parts
from .parts.outgoing import make_aggregator, make_conversion_caller, make_outgoing, make_proxy
from .parts.pages import make_fixed_pages, make_pages
from .parts.past import PresentParts, make_past
from .parts.registry import make_journal, make_registry
from .parts.tracing import make_traces
from .parts.ui import make_ui
from .request import lease_renewals, snapshot_endpoint
from .request.clock_endpoint import ClockStreams
from .request.hooks import HookPoints
from .request.openapi import openid_pages
from .storage.consistency import ConsistencyCheck
from .storage.stored_object import Layout


class ApiServer:
    """An API server over a store: `handler` handles requests, and `http` accepts connections."""

    stopping = False
    """Whether the server is shutting down: it still serves requests, but it is not ready."""

    def __init__(self, kv: KV, environment: ServerEnvironment, config: Config | None = None) -> None:
        config, self._kv, clock, self.hooks = config or Config(), kv, environment.clock, HookPoints()
        self._running, self._is_started, self._clock_streams = AsyncExitStack(), False, ClockStreams(clock)
        self.on_restored: list[Callable[[], Awaitable[None]]] = []
        """Awaited after a snapshot has replaced the content of the store."""
        self.metrics = metrics = MetricsRegistry()
        self.supervisor = TaskSupervisor(clock.real, TASKS, metrics)
        self._outgoing, self._traces = make_outgoing(environment, metrics), make_traces(config, environment)
        outgoing, traces = self._outgoing, self._traces

        # Kinds, rights and admission, and over them the registry: conversions call webhooks at addresses that it finds.
        caller = make_conversion_caller(config, outgoing, lambda: self.registry)
        reviews = ReviewDependencies(
            post=caller.post, clock=clock.real, random=environment.random, metrics=ConversionMetrics(metrics)
        )
        self.catalog = catalog = make_catalog(config, reviews)
        self.rights = rights = make_rights(config, catalog)
        self._operators = operators = make_operators(config, rights)
        admission = make_admission(config, catalog, rights, operators, outgoing, metrics)
        self.registry = registry = make_registry(
            config,
            environment,
            MeasuredKV(
                kv, Layout(config.store.etcd_prefix), catalog.stored_rows, clock.real.monotonic, metrics
            ),
            catalog,
            rights,
            admission,
            journal=make_journal(config, kv, clock),
            is_traced=traces is not None,
        )
        self.controls = controls = make_controls(
            config,
            environment,
            registry,
            self.hooks,
            lambda: self.handler.watch_handler.requests,
            kv=kv,
            rights=rights,
            on_restored=self.on_restored,
            reconciled=operators.reconciled,
        )
        self.resources: Mapping[GroupVersionResource, Resource] = catalog.rows
        self._caches = caches = ResourceCaches(registry, catalog)
        self._definitions = DefinitionController(registry, catalog)
        self.consistency_check = ConsistencyCheck(
            kv,
            registry.watch_cache,
            clock=clock,
            count=ConsistencyMetrics(caches.resources, metrics).count,
        )

        # Users, and other servers.
        authentication = make_authentication(
            config, environment, registry, outgoing, metrics, controls.sessions
        )
        self.authorizers = make_authorizers(config, rights, outgoing.remote.authorization)
        self.issuers = authentication.issuers
        self.bootstrap_roles = BootstrapRoles(registry, self.stored_row, config.features.kubernetes_version)
        self.aggregator = aggregator = make_aggregator(
            config, environment, outgoing, registry, self.resources[API_SERVICES]
        )

        # What handles requests.
        self.proxy, self.audit = make_proxy(environment), make_audit(config, clock)
        find = aggregator.row_finder(self.resources)
        observers = requests.make_observers(registry, rights, find, metrics)
        simulated = make_simulated_metrics(config, environment, registry, catalog, aggregator)
        observe_parts(config, registry, caches, self.audit, metrics)
        health = make_health(
            config,
            environment,
            registry,
            self.bootstrap_roles,
            self.supervisor,
            is_started=lambda: self._is_started,
            is_stopping=lambda: self.stopping,
        )
        fixed_pages = {
            **make_fixed_pages(config, registry, health, metrics, lambda: self.handler.pages),
            **openid_pages(authentication.accounts, address=environment.address),
            **self._clock_streams.pages(),
            snapshot_endpoint.PATH: snapshot_endpoint.page(
                registry, kv, self.on_restored, controls.find_snapshot
            ),
        }
        if self.audit is None:  # it contains each renewal as a request
            fixed_pages.update(lease_renewals.pages(registry, self.hooks))
        self.past = make_past(
            config,
            environment,
            PresentParts(
                kv=kv,
                registry=registry,
                reviews=reviews,
                rights=rights,
                outgoing=outgoing,
                proxy=self.proxy,
                find=find,
                handler=lambda: self.handler,
                served_versions=self._definitions.served_versions,
            ),
            controls.moments,
        )
        pages = make_pages(
            config,
            environment=environment,
            registry=registry,
            catalog=catalog,
            aggregator=aggregator,
            simulated=simulated,
            fixed=fixed_pages,
        )
        routes = requests.make_routes(
            config,
            catalog=catalog,
            aggregator=aggregator,
            proxy=self.proxy,
            verbs=requests.make_verbs(
                rights,
                authentication,
                simulated,
                requests.make_component_statuses(config, environment),
                controls.group,
            ),
            pages=pages,
            simulated=simulated,
            control=controls.group,
            past=self.past.serve,
        )
        filters = requests.make_filters(
            config,
            environment=environment,
            registry=registry,
            rights=rights,
            authentication=authentication,
            observers=observers,
            audit=self.audit,
            find=find,
            hooks=self.hooks,
            recorder=controls.recorder,
            ui=make_ui(controls.sessions, clock.real),
            tracer=None if traces is None else traces.tracer,
        )
        self.handler = requests.make_handler(registry, catalog, routes, filters)
        self.http = requests.make_http(environment, self.handler)

    def stored_row(self, name: GroupVersionResource) -> Resource:
        """Return the row of a resource, which need not be served."""
        group, _, resource = name
        return self.registry.rows[GroupResource(group, resource)]

    async def wait_definitions_served(self) -> None:
        """Wait until the kinds of all CustomResourceDefinitions that were created before this call are served."""
        await self.registry.watch_cache.fresh()
        await self._definitions.wait_idle()

    def end_streams(self) -> None:
        """End watches, proxied streams and those of the clock, which do not end by themselves."""
        self.handler.watch_handler.end_all()
        self.proxy.end_all()
        self.aggregator.proxy.end_all()
        self._clock_streams.end_all()
        self.past.end_streams()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._traces is not None:
                self._traces.start()
                stack.push_async_callback(self._traces.close)
            if self.audit is not None:
                stack.callback(self.audit.close)
            stack.push_async_callback(self._outgoing.webhooks.close)
            stack.push_async_callback(self._outgoing.remote.close)
            stack.push_async_callback(self.aggregator.proxy.close)
            if self.controls.group is not None:
                stack.push_async_callback(self.controls.group.close)
            await stack.enter_async_context(self.supervisor.running())
            stack.push_async_callback(self.past.close)
            await self._start()
            self._running = stack.pop_all()
        self._is_started = True
        return self

    async def _start(self) -> None:
        backend, start = self.registry, self.supervisor.start
        if isinstance(self._kv, EmbeddedStore):
            start("store", self._kv.supervise)
        start("watch-cache", backend.watch_cache.run)
        await backend.watch_cache.progress.wait_listed()
        if self.controls.group is not None:
            await self.controls.group.start(self.supervisor)
        if self.controls.faults is not None:
            self.on_restored.append(self.controls.faults.partitions.compare_all)
        self.rights.watch(self._caches.of, backend.watch_cache)
        start("watch-cache-lag", backend.watch_cache.lag.run)
        aggregated = self.resources[API_SERVICES]
        others = self.resources["", "v1", "services"], self.stored_row(ENDPOINT_SLICES)
        start("api-service-availability", self.aggregator.watch(aggregated, others, self.metrics).run)
        schemas, levels = self.stored_row(FLOW_SCHEMAS), self.stored_row(PRIORITY_LEVELS)
        start("flow-schema-status", FlowSchemaStatus(backend, schemas, levels).run)
        if self.issuers is not None:
            start("authentication-config", self.issuers.run)
        if self.authorizers is not None and self.authorizers.follows_file:
            start("authorization-config", self.authorizers.run)
        start(
            "api-service-registration",
            APIServiceRegistration(backend, backend.rows[DEFINITIONS], aggregated, USER_AGENT).run,
        )
        await self._definitions.catch_up()
        self.on_restored.append(self._definitions.wait_idle)
        start("crd-establishing", self._definitions.run)
        start("unreconciled-objects", UnreconciledObjects(backend, self._operators).run)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._running.__aexit__(kind, error, trace)

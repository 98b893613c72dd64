"""The composition root of the API server: creates its components and connects them."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, ProcessCollector

from mockube.apimachinery.clock import Clock, RealClock
from mockube.apimachinery.groups import GroupKind, GroupResource, GroupVersion
from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apiserver.admission.chain import Admission, AdmissionChainMetrics
from mockube.apiserver.admission.webhooks.dispatch import WebhookDependencies
from mockube.apiserver.aggregation.registration import APIServiceRegistration
from mockube.apiserver.assembly import (
    documented_resources,
    make_admission,
    make_catalog,
    make_filter_config,
    make_registry,
)
from mockube.apiserver.audit.audit import AuditCounts, open_log
from mockube.apiserver.authn.authenticators import CredentialCounts
from mockube.apiserver.authn.chain import Authenticators, Trust, authenticators
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.bootstrap.apiservices import API_SERVICES
from mockube.apiserver.bootstrap.endpoint_reconciler import ENDPOINT_SLICES
from mockube.apiserver.bootstrap.ensure import USER_AGENT
from mockube.apiserver.bootstrap.flow_schemas import FlowSchemaStatus
from mockube.apiserver.bootstrap.flowcontrol import FLOW_SCHEMAS, PRIORITY_LEVELS
from mockube.apiserver.bootstrap.rbac import rules_of_nodes
from mockube.apiserver.bootstrap.rbac_hook import BootstrapRoles
from mockube.apiserver.customresources.catalog import GroupVersionResource, equivalent_resources
from mockube.apiserver.customresources.controller import DEFINITIONS, DefinitionController
from mockube.apiserver.customresources.conversion_webhook import ReviewDependencies
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.http.aggregator import Aggregator, ConversionCaller
from mockube.apiserver.http.backend_connection import Dialer
from mockube.apiserver.http.outgoing_client import RemoteServices
from mockube.apiserver.http.probe import probe
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.server import Server
from mockube.apiserver.http.settings import Settings
from mockube.apiserver.http.webhook_client import WebhookClient
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.registry import GROUPS, printer_of_kind
from mockube.apiserver.metrics.audit import AuditMetrics
from mockube.apiserver.metrics.authentication import CredentialMetrics
from mockube.apiserver.metrics.requests import AccessMetrics, RequestMetrics
from mockube.apiserver.metrics.storage import ConsistencyMetrics, DecodeMetrics, ObjectMetrics, storage_size
from mockube.apiserver.metrics.webhooks import ConversionMetrics
from mockube.apiserver.openapi.documents import DocumentCache, Documents
from mockube.apiserver.registry.component_statuses import ComponentStatuses
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.resource_metrics import ResourceMetrics
from mockube.apiserver.registry.reviews.verbs import review_verbs
from mockube.apiserver.registry.watch_stream import end_watches
from mockube.apiserver.request import snapshot_endpoint
from mockube.apiserver.request.audit import RequestObserver
from mockube.apiserver.request.endpoints import BINDINGS, Routes
from mockube.apiserver.request.handler import Handler
from mockube.apiserver.request.health import HealthChecks, Pages, server_checks
from mockube.apiserver.request.metrics_endpoint import metrics_page
from mockube.apiserver.request.metrics_pages import MetricsPages
from mockube.apiserver.request.openapi import openapi_pages, openid_pages
from mockube.apiserver.request.pages import RenewedPages, api_pages, with_index
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.zpages import debug_pages, zpages
from mockube.apiserver.storage.consistency import ConsistencyCheck
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import Layout
from mockube.apiserver.supervision import TaskSupervisor
from mockube.apiserver.wire.table import Printer
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV


def catalog() -> Mapping[GroupVersionResource, Resource]:
    """Return every built-in resource by group, version and name."""
    return {(row.group, row.version, row.name): row for group in GROUPS for row in group.resources}


class ApiServer:
    """An API server over a store: `handler` handles requests, and `http` accepts connections."""

    stopping = False
    """Whether the server is shutting down: it still serves requests, but it is not ready."""
    _metrics_pages: MetricsPages | None = None

    def __init__(
        self,
        kv: KV,
        *,
        trust: Trust,
        settings: Settings | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        clock, random, settings = clock or RealClock(), random or SystemRandom(), settings or Settings()
        schemas = builtin.load(settings.minor)
        self._conversions, self._credentials = ConversionMetrics(), CredentialCounts()
        sockets, self._git_version = settings.connection_clock, settings.git_version
        dialer = Dialer(settings.kubelets, sockets)
        self._webhook_client = WebhookClient(dialer, sockets)
        caller = ConversionCaller(self._webhook_client, settings.webhook_services, lambda: self.registry)
        reviews = ReviewDependencies(post=caller.post, clock=clock, random=random, metrics=self._conversions)
        self.catalog = make_catalog(settings, schemas, reviews)
        self.resources: Mapping[GroupVersionResource, Resource] = self.catalog.rows
        self.rights = rights = self._rights(settings)
        self._webhooks = WebhookDependencies(
            caller=self._webhook_client,
            authorization=rights.authorization,
            equivalents=equivalent_resources(self.catalog, Layout(settings.prefix)),
            services=settings.webhook_services,
            allows_simulated=settings.allows_simulated_webhooks,
        )
        self.registry = make_registry(
            kv, self.catalog, settings, rights, self._admission(settings, clock), clock=clock, random=random
        )
        self.aggregator = self._aggregator(settings, dialer)
        self.bootstrap_roles = BootstrapRoles(self.registry, self.stored_row, settings.minor)
        self.on_restored: list[Callable[[], Awaitable[None]]] = []
        """Awaited after a snapshot has replaced the content of the store."""
        self._documents = DocumentCache()
        self._document_worker = Worker()
        """Builds OpenAPI documents. It is separate, so that requests for objects do not wait for them."""
        self.audit = open_log(settings.audit_log, settings.audit_policy, clock)
        self.supervisor, watch_cache = TaskSupervisor(clock), self.registry.watch_cache
        self._resource_caches: dict[bytes, GroupResource] = {}
        self._claim_resource_caches()
        self._consistency = ConsistencyMetrics(self._resource_caches)
        self.consistency_check = ConsistencyCheck(kv, watch_cache, clock=clock, count=self._consistency.count)
        self.proxy = ReverseProxy(settings.kubelets, settings.connection_clock)
        self.handler = self._handler(trust, settings)
        self.http = Server(
            self.handler.handle, clock=settings.connection_clock, authorities=settings.authorities
        )
        watch_cache.on_reset.append(self.handler.watch_handler.expire_all)
        self._running, self._is_started = AsyncExitStack(), False

    def end_streams(self) -> None:
        """End watches and proxied streams, which do not end by themselves."""
        self.handler.watch_handler.end_all()
        self.proxy.end_all()
        self.aggregator.proxy.end_all()

    def _aggregator(self, settings: Settings, dialer: Dialer) -> Aggregator:
        services, certificate = settings.webhook_services, settings.proxy_certificate
        return Aggregator(self.registry, self.resources[API_SERVICES], services, certificate, dialer)

    def _admission(self, settings: Settings, clock: Clock) -> Admission:
        """Create the admission plugins, their metrics, and the client of plugins that call other servers."""
        self._admission_metrics = AdmissionChainMetrics()
        self._remote = RemoteServices(settings.identity, clock, settings.connection_clock)
        metrics, outbound = self._admission_metrics, self._remote.outbound
        return make_admission(settings, self.catalog, self._webhooks, self.rights, metrics, outbound)

    def _rights(self, settings: Settings) -> Rights:
        rules = rules_of_nodes(settings.minor)
        rights = Rights(settings.authorization_modes, rules, self.catalog.stored_rows)
        rights.authorization.names_authorizers = not minors.is_before(settings.minor, "1.37")
        return rights

    def _authenticators(self, trust: Trust, settings: Settings) -> Authenticators:
        """Create the authenticators and authorizers, with their webhooks."""
        backend = self.registry
        self.authorizers = None
        if settings.authorization is not None:
            self.authorizers = self.rights.configure(settings.authorization, self._remote.authorization)
        authentication = authenticators(
            trust,
            self._find_core,
            clock=backend.clock,
            random=backend.random,
            label=partial(patch_as_server, backend, self.resources["", "v1", "secrets"]),
            is_anonymous_limited="AlwaysAllow" in settings.authorization_modes,
            remote=self._remote.authentication,
            counts=self._credentials,
        )
        self.issuers = authentication.issuers
        return authentication

    def _handler(self, trust: Trust, settings: Settings) -> Handler:
        backend, find_row = self.registry, self.aggregator.row_finder(self.resources)
        authorization, requests = self.rights.authorization, RequestMetrics(find_row)
        access = AccessMetrics(authorization.decisions, backend.clock.monotonic)
        authentication = self._authenticators(trust, settings)
        self._health = self._make_health(settings)
        others = {
            **openid_pages(authentication.accounts, address=settings.address),
            "/metrics": metrics_page(
                self._metrics(requests, access).collect, backend.clock, partial(storage_size, backend.kv)
            ),
            "/metrics/slis": metrics_page(self._health.collect, backend.clock),
            **self._zpages(settings),
            snapshot_endpoint.PATH: snapshot_endpoint.page(backend, self.on_restored),
        }
        reviews = review_verbs(authentication.bearer, authorization, authentication.accounts)
        own_verbs = BINDINGS | ComponentStatuses(probe).verbs() | reviews
        if settings.simulate_metrics:
            expressions = Expressions(backend.clock, backend.random)
            own_verbs |= ResourceMetrics(expressions).verbs()
            elsewhere = self.aggregator.served_elsewhere
            self._metrics_pages = metrics = MetricsPages(backend, expressions, elsewhere)
            self.catalog.on_resource.append(metrics.handle_definition)
        routes = Routes(
            own_verbs=own_verbs,
            pages=self._renewed_pages(settings.address, others),
            remote=self.aggregator.page,
            built_in={group.name for group in self.catalog.kinds.groups},
            groups={} if self._metrics_pages is None else self._metrics_pages.groups(),
            proxy=self.proxy,
            websockets_need_create=not minors.is_before(settings.minor, "1.35"),
            kubelet_addresses=settings.kubelet_addresses,
            service_family=f"IPv{settings.service_cluster_ip_ranges[0].version}",
        )
        config = make_filter_config(
            backend,
            settings,
            authentication=authentication.chain,
            authorization=authorization,
            resources=find_row,
            access=access,
            observer=RequestObserver(requests, self.audit, clock=backend.clock),
            request_headers=trust.request_headers,
        )
        return Handler(backend, routes, self._renderer(), config)

    def _make_health(self, settings: Settings) -> HealthChecks:
        checks = server_checks(
            self.registry,
            is_started=lambda: self._is_started,
            is_stopping=lambda: self.stopping,
            roles_problem=self.bootstrap_roles.problem if "RBAC" in settings.authorization_modes else None,
            task_problem=self.supervisor.problem,
            has_flow_control=settings.names_flows,
        )
        return HealthChecks(checks, settings.connection_clock)

    def _renderer(self) -> Renderer:
        backend = self.registry
        report = backend.watch_cache.report_malformed
        return Renderer(self._printer, backend.clock, report, backend.worker)

    def _renewed_pages(self, address: str, others: Pages) -> Pages:
        metrics = self._metrics_pages

        def make_pages() -> Pages:
            return with_index({**self._pages(address), **others, **(metrics.versions() if metrics else {})})

        pages = RenewedPages(make_pages, metrics.refresh if metrics else None)
        changes = [self.catalog.on_change, self.aggregator.remotes.on_change]
        for on_change in (*changes, *([metrics.on_change] if metrics else [])):
            on_change.append(pages.invalidate)
        return pages

    def _zpages(self, settings: Settings) -> Pages:
        """Return the pages for debugging."""
        pages = debug_pages(has_flow_control=settings.names_flows)
        gates, clock = settings.gates, self.registry.clock
        return {**pages, **zpages(clock, gates, settings.flags, lambda: self.handler.pages)}

    def _pages(self, address: str) -> Pages:
        """Return the discovery and OpenAPI pages of all served resources."""
        catalog = self.catalog
        kinds, others = catalog.kinds, self.aggregator.other_groups()
        if self._metrics_pages is not None:
            others = self._metrics_pages.add_to(others)
        foreign = [*self.aggregator.foreign_documents()]
        rows, custom_versions = documented_resources(catalog), catalog.listed_versions
        documents = Documents(rows, custom_versions, kinds.strategies, foreign, kinds.minor, self._documents)
        return {
            **api_pages(
                catalog.groups,
                address=address,
                others=others,
                minor=kinds.minor,
                git_version=self._git_version,
            ),
            **self._health.pages,
            **openapi_pages(documents, self._document_worker, self.registry.clock),
            **self.aggregator.pages(),
        }

    def stored_row(self, name: GroupVersionResource) -> Resource:
        """Return the row of a resource, which need not be served."""
        group, _, resource = name
        return self.registry.rows[GroupResource(group, resource)]

    def _cache_of(self, group: str, resource: str) -> ResourceCache:
        row = self.registry.rows[GroupResource(group, resource)]
        return self.registry.watch_cache.resource_cache(self.registry.layout.prefix(row))

    def _claim_resource_caches(self) -> None:
        for name in self.registry.rows:
            self._claim_resource_cache(name)
        self.catalog.on_resource += (self._claim_resource_cache, partial(end_watches, self.registry))

    def _claim_resource_cache(self, name: GroupResource) -> None:
        """Cache the objects of a resource, for example those of a new custom resource."""
        row = self.registry.rows.get(name)
        if row is None:
            return
        prefix = self.registry.layout.prefix(row)
        self.registry.watch_cache.expect_kind(prefix, row.kind, self.catalog.api_versions(name))
        if prefix not in self._resource_caches:
            self.registry.watch_cache.resource_cache(prefix)
            self._resource_caches[prefix] = name

    def _metrics(self, requests: RequestMetrics, access: AccessMetrics) -> CollectorRegistry:
        registry = CollectorRegistry()
        unreadable = DecodeMetrics(self.registry.watch_cache.unreadable.failures, self._resource_caches)
        for collector in (
            requests,
            access,
            ObjectMetrics(self._counts),
            self._consistency,
            unreadable,
            self.supervisor,
            self._webhooks.metrics,
            *self._admission_metrics.collectors,
            self._conversions,
            CredentialMetrics(self._credentials),
            self._remote,
            AuditMetrics(AuditCounts() if self.audit is None else self.audit.counts),
        ):
            registry.register(collector)
        ProcessCollector(registry=registry)
        return registry

    def _printer(self, api_version: str, kind: str) -> Printer:
        custom = self.catalog.custom_kinds.get((api_version, kind))
        group = GroupVersion.parse(api_version).group
        return (
            printer_of_kind(GroupKind(group, kind), self.catalog.kinds) if custom is None else custom.printer
        )

    def _counts(self) -> Mapping[GroupResource, int]:
        counts = {
            self._resource_caches[resource_cache.prefix]: len(resource_cache)
            for resource_cache in self.registry.watch_cache.resource_caches()
            if resource_cache.prefix in self._resource_caches
        }
        rows = self.registry.rows
        return {name: count for name, count in counts.items() if name in rows and "watch" in rows[name].verbs}

    async def _find_core(self, resource: str, namespace: str, name: str) -> Tree | None:
        stored = await self.registry.find(self.stored_row(("", "v1", resource)), namespace, name)
        return None if stored is None else stored.tree()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self.audit is not None:
                stack.callback(self.audit.close)
            stack.push_async_callback(self._webhook_client.close)
            stack.push_async_callback(self._remote.close)
            stack.push_async_callback(self.aggregator.proxy.close)
            await stack.enter_async_context(self.supervisor.running())
            await self._start()
            self._running = stack.pop_all()
        self._is_started = True
        return self

    async def _start(self) -> None:
        backend, start = self.registry, self.supervisor.start
        if isinstance(backend.kv, EmbeddedStore):
            start("store", backend.kv.supervise)
        start("watch-cache", backend.watch_cache.run)
        await backend.watch_cache.wait_listed()
        self.rights.watch(self._cache_of, backend.watch_cache)
        start("watch-cache-lag", backend.watch_cache.watch_lag)
        aggregated = self.resources[API_SERVICES]
        others = self.resources["", "v1", "services"], self.stored_row(ENDPOINT_SLICES)
        start("api-service-availability", self.aggregator.watch(aggregated, others).run)
        schemas, levels = self.stored_row(FLOW_SCHEMAS), self.stored_row(PRIORITY_LEVELS)
        start("flow-schema-status", FlowSchemaStatus(backend, schemas, levels).run)
        if self.issuers is not None:
            start("authentication-config", self.issuers.run)
        if self.authorizers is not None and self.authorizers.follows_file:
            start("authorization-config", self.authorizers.run)
        definitions = backend.rows[DEFINITIONS]
        start(
            "api-service-registration",
            APIServiceRegistration(backend, definitions, aggregated, USER_AGENT).run,
        )
        definition_controller = DefinitionController(backend, self.catalog)
        await definition_controller.catch_up()
        self.on_restored.append(definition_controller.wait_idle)
        start("crd-establishing", definition_controller.run)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._running.__aexit__(kind, error, trace)

"""What handles requests: the filters, the routes, the verbs that differ from those of the registry, and connections."""

from collections.abc import Callable
from ipaddress import ip_network
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from mockube.apimachinery.groups import CONTROL, GroupKind, GroupVersion
from mockube.apimachinery.schema import minors
from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.authn.chain import Authenticators
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.control.group import ControlGroup
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.http.probe import probe
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.server import Server
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.built_in_kinds import printer_of_kind
from mockube.apiserver.metrics.access import AccessMetrics
from mockube.apiserver.metrics.requests import RequestMetrics
from mockube.apiserver.metrics.watches import WatchMetrics
from mockube.apiserver.registry.component_statuses import ComponentStatuses
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.reviews.verbs import review_verbs
from mockube.apiserver.request.endpoints import BINDINGS, Routes
from mockube.apiserver.request.filter import FilterConfig
from mockube.apiserver.request.flows import Flows
from mockube.apiserver.request.handler import Handler
from mockube.apiserver.request.hooks import HookPoints
from mockube.apiserver.request.hosts import Hosts
from mockube.apiserver.request.limits import Deadlines, InFlight
from mockube.apiserver.request.page import Page, Pages
from mockube.apiserver.request.past import no_past
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.request_observer import AuditIds, RequestObserver
from mockube.apiserver.request.ui import UserInterface
from mockube.apiserver.wire.table import Printer
from mockube.component_base.metrics import MetricsRegistry

from .environment import ServerEnvironment
from .metrics import SimulatedMetrics

if TYPE_CHECKING:
    from mockube.apiserver.tracing.tracer import Tracer

FindResource: TypeAlias = Callable[[str, str, str], Resource | None]
"""Returns the resource of a group, version and name."""


class Observers(Struct, frozen=True, kw_only=True):
    """What counts requests."""

    requests: RequestMetrics
    access: AccessMetrics
    watches: WatchMetrics
    metrics: MetricsRegistry


def make_observers(
    registry: Registry, rights: Rights, find: FindResource, metrics: MetricsRegistry
) -> Observers:
    access = AccessMetrics(rights.authorization.decisions, registry.clock.real.monotonic, metrics)
    return Observers(
        requests=RequestMetrics(find, metrics), access=access, watches=WatchMetrics(metrics), metrics=metrics
    )


def make_verbs(
    rights: Rights,
    authentication: Authenticators,
    simulated: SimulatedMetrics | None,
    component_statuses: ComponentStatuses,
    control: ControlGroup | None,
) -> OwnVerbs:
    """Return the verbs of resources that are not stored, or not as they are sent."""
    reviews = review_verbs(authentication.bearer, rights.authorization, authentication.accounts)
    metrics = {} if simulated is None else simulated.verbs
    own = {} if control is None else control.verbs()
    return BINDINGS | component_statuses.verbs() | reviews | metrics | own


def make_component_statuses(config: Config, environment: ServerEnvironment) -> ComponentStatuses:
    return ComponentStatuses(
        probe,
        urls_file=config.serving.component_urls,
        embedded_probes=environment.component_probes,
    )


def make_routes(  # noqa: PLR0913 - each argument is a part
    config: Config,
    *,
    catalog: Catalog,
    aggregator: Aggregator,
    proxy: ReverseProxy,
    verbs: OwnVerbs,
    pages: Pages,
    simulated: SimulatedMetrics | None,
    control: ControlGroup | None,
    past: Page = no_past,
) -> Routes:
    return Routes(
        past=past,
        own_verbs=verbs,
        pages=pages,
        remote=aggregator.page,
        built_in={group.name for group in catalog.kinds.groups},
        groups={} if simulated is None else simulated.pages.groups(),
        own_watches={} if control is None else control.watches(),
        registries={} if control is None else {CONTROL: control.registry},
        proxy=proxy,
        websockets_need_create=not minors.is_before(config.features.kubernetes_version, "1.35"),
        kubelet_addresses=config.kubelets.kubelet_preferred_address_types,
        service_family=f"IPv{ip_network(config.services.service_cluster_ip_range[0]).version}",
    )


def make_filters(  # noqa: PLR0913 - each argument is a part
    config: Config,
    *,
    environment: ServerEnvironment,
    registry: Registry,
    rights: Rights,
    authentication: Authenticators,
    observers: Observers,
    audit: Audit | None,
    find: FindResource,
    hooks: HookPoints,
    recorder: RequestRecorder | None,
    ui: UserInterface | None,
    tracer: "Tracer | None",
) -> FilterConfig:
    serving = config.serving
    return FilterConfig(
        authentication=authentication.chain,
        authorization=rights.authorization,
        resources=find,
        access=observers.access,
        watches=observers.watches,
        hosts=_hosts(config, environment),
        observer=RequestObserver(observers.requests, audit, clock=registry.clock.real, recorder=recorder),
        audit_ids=AuditIds(registry.random),
        flows=Flows(registry, observers.metrics) if config.features.enable_priority_and_fairness else None,
        in_flight=InFlight(
            reads=serving.max_requests_inflight, writes=serving.max_mutating_requests_inflight
        ),
        deadlines=Deadlines(registry.clock.real),
        seconds=serving.request_timeout,
        watch_seconds=serving.min_request_timeout,
        hooks=hooks,
        constrained_impersonation=not minors.is_before(config.features.kubernetes_version, "1.36"),
        request_headers=environment.trust.request_headers,
        serve_ui=None if ui is None else ui.serve,
        tracer=tracer,
    )


def _hosts(config: Config, environment: ServerEnvironment) -> Hosts:
    """Return the allowed host names, which are updated when the serving certificate changes."""
    allowed, credentials = config.serving.allowed_hosts, environment.credentials
    hosts = Hosts(allowed)
    if credentials is not None:

        def replace() -> None:
            hosts.replace((*credentials.names, *allowed))

        replace()
        credentials.tls.on_new_certificate.append(replace)
    return hosts


def make_handler(registry: Registry, catalog: Catalog, routes: Routes, filters: FilterConfig) -> Handler:
    def find_printer(api_version: str, kind: str) -> Printer:
        custom = catalog.custom_kinds.get((api_version, kind))
        if custom is not None:
            return custom.printer
        return printer_of_kind(GroupKind(GroupVersion.parse(api_version).group, kind), catalog.kinds)

    report = registry.watch_cache.report_malformed
    renderer = Renderer(find_printer, registry.clock, report, registry.worker)
    handler = Handler(registry, routes, renderer, filters)
    registry.watch_cache.on_reset.append(handler.watch_handler.expire_all)
    return handler


def make_http(environment: ServerEnvironment, handler: Handler) -> Server:
    """Return what accepts connections."""
    return Server(handler.handle, clock=environment.clock.real)

"""What handles requests: the filters, the routes, and the verbs that differ from those of the registry."""

from ipaddress import ip_network

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.schema import minors
from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.authn.chain import Authenticators
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.control.server_control import NoControl
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.http.aggregator import Aggregator
from mockube.apiserver.http.probe import probe
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
from mockube.apiserver.request.hosts import Hosts
from mockube.apiserver.request.limits import Deadlines, InFlight
from mockube.apiserver.request.page import Pages
from mockube.apiserver.request.past import Past
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.request_observer import AuditIds, RequestObserver
from mockube.apiserver.wire.table import Printer

from .aggregation import FindResource
from .context import ApiServerContext
from .metrics import SimulatedMetrics
from .observation import Observation
from .outgoing import Outgoing
from .ui import make_ui


class Observers(Struct, frozen=True, kw_only=True):
    """What counts, records and logs requests, by the resources that `find` finds."""

    find: FindResource
    access: AccessMetrics
    watches: WatchMetrics
    observer: RequestObserver


def make_observers(
    context: ApiServerContext,
    rights: Rights,
    find: FindResource,
    audit: Audit | None,
    observation: Observation | None,
) -> Observers:
    clock, metrics = context.clock.real, context.metrics
    recorder = None if observation is None else observation.recorder
    requests = RequestMetrics(find, metrics)
    return Observers(
        find=find,
        access=AccessMetrics(rights.authorization.decisions, clock.monotonic, metrics),
        watches=WatchMetrics(metrics),
        observer=RequestObserver(requests, audit, clock=clock, recorder=recorder),
    )


def make_verbs(
    context: ApiServerContext,
    rights: Rights,
    authentication: Authenticators,
    simulated: SimulatedMetrics,
    control: NoControl,
) -> OwnVerbs:
    """Return the verbs of resources that are not stored, or not as they are sent."""
    component_statuses = ComponentStatuses(
        probe,
        urls_file=context.config.serving.component_urls,
        embedded_probes=context.environment.component_probes,
    )
    reviews = review_verbs(authentication.bearer, rights.authorization, authentication.accounts)
    return BINDINGS | component_statuses.verbs() | reviews | simulated.verbs | control.verbs()


def make_stored_routes(
    context: ApiServerContext, catalog: Catalog, aggregator: Aggregator, outgoing: Outgoing, pages: Pages
) -> Routes:
    """Return the routes of what is in the store, of the present or of a moment of the past."""
    config = context.config
    return Routes(
        own_verbs={},
        pages=pages,
        remote=aggregator.page,
        built_in={group.name for group in catalog.kinds.groups},
        proxy=outgoing.proxy,
        websockets_need_create=not minors.is_before(context.minor, "1.35"),
        kubelet_addresses=config.kubelets.kubelet_preferred_address_types,
        service_family=f"IPv{ip_network(config.services.service_cluster_ip_range[0]).version}",
    )


def make_routes(
    stored: Routes, verbs: OwnVerbs, simulated: SimulatedMetrics, control: NoControl, past: Past
) -> Routes:
    """Return all routes of the present."""
    return replace(
        stored,
        own_verbs=verbs,
        groups=simulated.pages.groups(),
        own_watches=control.watches(),
        registries=control.registries(),
        past=past.serve,
    )


def make_filters(
    context: ApiServerContext,
    registry: Registry,
    rights: Rights,
    authentication: Authenticators,
    observers: Observers,
    control: NoControl,
) -> FilterConfig:
    serving, features = context.config.serving, context.config.features
    ui, traces = make_ui(context, control.sessions), context.traces
    return FilterConfig(
        authentication=authentication.chain,
        authorization=rights.authorization,
        resources=observers.find,
        access=observers.access,
        watches=observers.watches,
        hosts=_hosts(context),
        observer=observers.observer,
        audit_ids=AuditIds(registry.random),
        flows=Flows(registry, context.metrics) if features.enable_priority_and_fairness else None,
        in_flight=InFlight(
            reads=serving.max_requests_inflight, writes=serving.max_mutating_requests_inflight
        ),
        deadlines=Deadlines(context.clock.real),
        seconds=serving.request_timeout,
        watch_seconds=serving.min_request_timeout,
        hooks=context.hooks,
        constrained_impersonation=not minors.is_before(context.minor, "1.36"),
        request_headers=context.environment.trust.request_headers,
        serve_ui=None if ui is None else ui.serve,
        tracer=None if traces is None else traces.tracer,
    )


def _hosts(context: ApiServerContext) -> Hosts:
    """Return the allowed host names, which are updated when the serving certificate changes."""
    allowed, credentials = context.config.serving.allowed_hosts, context.environment.credentials
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

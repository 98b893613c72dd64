"""Create the dependencies of an API server: the catalog, admission, the registry over a store, what filters need."""

from collections.abc import Callable, Sequence

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.groups import SERVICES, GroupResource
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.schema.model import Schemas
from mockube.apiserver.admission.chain import Admission, AdmissionChainMetrics, plugins
from mockube.apiserver.admission.pod_certificate_signing import PodCertificateSigning
from mockube.apiserver.admission.policies.param_access import PolicyParamAccess
from mockube.apiserver.admission.resource_claim_access import ResourceClaimAccess
from mockube.apiserver.admission.role_escalation import RoleEscalation
from mockube.apiserver.admission.webhooks.dispatch import WebhookDependencies
from mockube.apiserver.allocation.services import ServiceAllocator
from mockube.apiserver.authn.authenticators import Authentication
from mockube.apiserver.authn.request_headers import RequestHeaders
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.conversion_webhook import ReviewDependencies
from mockube.apiserver.customresources.registries import AllDecoder, AllRules, AllSchemas
from mockube.apiserver.http.settings import Settings
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.apiextensions import v1beta1
from mockube.apiserver.kinds.kind_rules import Defaulter, KindRules, UnprivilegedRules
from mockube.apiserver.kinds.metrics import resource_metrics
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.apiserver.metrics.requests import AccessMetrics
from mockube.apiserver.outgoing import OutgoingDependencies
from mockube.apiserver.packs.registry import pack_conversions, pack_kinds, pack_webhooks
from mockube.apiserver.registry.registry import Allocators, Registry, Scheme
from mockube.apiserver.request.audit import AuditIds, RequestObserver
from mockube.apiserver.request.filter import FilterConfig
from mockube.apiserver.request.flow_headers import Flows
from mockube.apiserver.request.limits import Deadlines, InFlight
from mockube.apiserver.storage.lease_manager import LeaseManager
from mockube.apiserver.storage.shapes import TypeCheckedReader
from mockube.apiserver.storage.stored_object import Layout
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.etcd.kv import KV

EVENTS = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
"""The resource of events, which two groups serve."""


def make_catalog(settings: Settings, schemas: Schemas, reviews: ReviewDependencies) -> Catalog:
    kinds = kinds_of(settings.minor, settings.overrides, settings.gates)
    groups = (
        (*kinds.groups, resource_metrics.group_of(settings.minor))
        if settings.simulate_metrics
        else kinds.groups
    )
    catalog = Catalog(groups, kinds=kinds, reviews=reviews, functions=pack_conversions(settings.packs))
    for custom_versions in pack_kinds(settings.packs, schemas):
        catalog.add(custom_versions)
    return catalog


def make_admission(
    settings: Settings,
    catalog: Catalog,
    webhooks: WebhookDependencies,
    rights: Rights,
    metrics: AdmissionChainMetrics,
    outbound: OutgoingDependencies,
) -> Admission:
    enabled_plugins = plugins(
        webhooks, rights.authorization, metrics, settings.plugins, settings.minor, outbound
    )
    escalation = RoleEscalation(rights.authorization, rights.rbac.policy)
    own = (
        escalation,
        PolicyParamAccess(webhooks.equivalents),
        PodCertificateSigning(),
        ResourceClaimAccess(authorizes_status=not minors.is_before(settings.minor, "1.36")),
    )
    return Admission([*enabled_plugins, *pack_webhooks(settings.packs, catalog), *own], metrics.admission)


def documented_resources(catalog: Catalog) -> Sequence[Resource]:
    """Return the resources that OpenAPI describes; metrics have no schemas."""
    return [
        row
        for row in catalog.rows.values()
        if catalog.is_listed(row.group_resource) and (row.custom or row.group != resource_metrics.GROUP_NAME)
    ]


def make_registry(  # noqa: PLR0913 - each argument is a dependency
    kv: KV,
    catalog: Catalog,
    settings: Settings,
    rights: Rights,
    admission: Admission,
    *,
    clock: Clock,
    random: Random,
) -> Registry:
    schemas, kinds, layout = builtin.load(settings.minor), catalog.kinds, Layout(settings.prefix)
    rules = (KindRules if settings.allow_privileged else UnprivilegedRules)(
        Defaulter(schemas, clock=clock, kinds=kinds), kinds
    )
    if settings.minor != minors.NEWEST:
        from mockube.apiserver.kinds.minors.go_values import format_values_of  # noqa: PLC0415 - only older minors need it

        format_values_of(rules, settings.minor)
    watch_cache = WatchCache(
        kv, layout.root, clock=clock, read=TypeCheckedReader(schemas, {v1beta1.HEAD: v1beta1.to_v1}).read
    )
    scheme = Scheme(
        schemas=AllSchemas(schemas, catalog),
        decoder=AllDecoder(schemas, catalog),
        rules=AllRules(rules, catalog),
        strategies=kinds.strategies,
        version_strategies=catalog.version_strategies,
        conversions=catalog.conversions,
        prepare=catalog.prepare,
    )
    return Registry(
        kv=kv,
        layout=layout,
        watch_cache=watch_cache,
        clock=clock,
        random=random,
        rows=catalog.stored_rows,
        gates=settings.gates,
        scheme=scheme,
        admission=admission,
        allocators=_allocators(kv, settings, clock),
        authorization=rights.authorization,
        watch_list=settings.watch_list,
    )


def _allocators(kv: KV, settings: Settings, clock: Clock) -> Allocators:
    services = ServiceAllocator(
        networks=settings.service_cluster_ip_ranges, node_ports=settings.service_node_ports
    )
    event_leases = LeaseManager(kv, clock=clock, seconds=settings.event_ttl)
    return Allocators(by_resource={SERVICES: services}, lease_managers=dict.fromkeys(EVENTS, event_leases))


def make_filter_config(  # noqa: PLR0913 - each argument is a dependency
    registry: Registry,
    settings: Settings,
    *,
    authentication: Authentication,
    authorization: Authorization,
    resources: Callable[[str, str, str], Resource | None],
    access: AccessMetrics,
    observer: RequestObserver,
    request_headers: RequestHeaders | None,
) -> FilterConfig:
    return FilterConfig(
        authentication=authentication,
        authorization=authorization,
        resources=resources,
        access=access,
        hosts=settings.hosts,
        observer=observer,
        audit_ids=AuditIds(registry.random),
        flows=Flows(registry) if settings.names_flows else None,
        in_flight=InFlight(settings.budget),
        deadlines=Deadlines(registry.clock),
        seconds=settings.budget.seconds,
        watch_seconds=settings.budget.watch_seconds,
        middleware=settings.middleware,
        constrained_impersonation=not minors.is_before(settings.minor, "1.36"),
        request_headers=request_headers,
    )

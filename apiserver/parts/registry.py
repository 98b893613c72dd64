"""The registry over a store: the watch cache, what decodes, checks and converts objects, and the allocators."""

import sys
from ipaddress import ip_network

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.groups import SERVICES, GroupResource
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.schema.model import Schemas
from mockube.apiserver.allocation.services import ServiceAllocator
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.config.history import journal_bytes
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.controller import DefinitionController
from mockube.apiserver.customresources.conversion_webhook import ReviewDependencies
from mockube.apiserver.customresources.registries import AllDecoder, AllRules, AllSchemas
from mockube.apiserver.http.aggregator import ConversionCaller
from mockube.apiserver.kinds.apiextensions import v1beta1
from mockube.apiserver.kinds.kind_rules import Defaulter, KindRules, UnprivilegedRules
from mockube.apiserver.metrics.admission import ConversionMetrics
from mockube.apiserver.metrics.measured_kv import MeasuredKV
from mockube.apiserver.metrics.storage import ConsistencyMetrics
from mockube.apiserver.registry.registry import Admission, Allocators, Registry, Scheme
from mockube.apiserver.storage.consistency import ConsistencyCheck
from mockube.apiserver.storage.journal import Journal
from mockube.apiserver.storage.lease_manager import LeaseManager
from mockube.apiserver.storage.shapes import TypeCheckedReader
from mockube.apiserver.storage.stored_object import Layout
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.clock import Clock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV

from .caches import ResourceCaches
from .context import ApiServerContext
from .outgoing import Outgoing

EVENTS = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
"""The resource of events, which two groups serve."""


class Storage(Struct, frozen=True, kw_only=True):
    """The registry, and what keeps its caches and its custom resources as the store has them."""

    registry: Registry
    caches: ResourceCaches
    reviews: ReviewDependencies
    """By which the webhooks of definitions convert objects."""
    definitions: DefinitionController
    consistency_check: ConsistencyCheck


def make_storage(
    context: ApiServerContext, catalog: Catalog, rights: Rights, admission: Admission, outgoing: Outgoing
) -> Storage:
    measured, clock = replace(context, kv=_measured(context, catalog)), context.clock
    registry = make_registry(measured, catalog, rights, admission, _make_journal(context))
    caches = ResourceCaches(registry, catalog)
    reviews = _make_reviews(context, outgoing, registry)
    return Storage(
        registry=registry,
        caches=caches,
        reviews=reviews,
        definitions=DefinitionController(registry, catalog, reviews),
        consistency_check=ConsistencyCheck(
            context.kv,
            registry.watch_cache,
            clock=clock,
            count=ConsistencyMetrics(caches.resources, context.metrics).count,
        ),
    )


def make_registry(
    context: ApiServerContext, catalog: Catalog, rights: Rights, admission: Admission, journal: Journal
) -> Registry:
    config, clock = context.config, context.clock
    schemas, layout = builtin.load(context.minor), Layout(config.store.etcd_prefix)
    read = TypeCheckedReader(schemas, {v1beta1.HEAD: v1beta1.to_v1}).read
    make, kv, admitted = Registry, context.kv, admission
    if config.tracing.tracing_config_file is not None:
        make, kv, admitted = _traced_parts(context, catalog, admission)
    return make(
        kv=kv,
        layout=layout,
        watch_cache=WatchCache(context.kv, layout.root, clock=clock, read=read),
        clock=clock,
        random=context.environment.random,
        journal=journal,
        local_ports=context.environment.local_ports,
        rows=catalog.stored_rows,
        gates=config.features.gates,
        scheme=_scheme(schemas, catalog, _kind_rules(config, schemas, catalog, clock)),
        admission=admitted,
        allocators=_allocators(context),
        authorization=rights.authorization,
        watch_list=config.features.gates.is_on("WatchList"),
    )


def _traced_parts(
    context: ApiServerContext, catalog: Catalog, admission: Admission
) -> tuple[type[Registry], KV, Admission]:
    """Return the class of a registry whose work is traced, and its store and admission."""
    from mockube.apiserver.registry.traced import TracedAdmission, TracedRegistry, go_type  # noqa: PLC0415 - only with a flag
    from mockube.apiserver.storage.traced_kv import TracedKV  # noqa: PLC0415 - only with a flag

    rows, layout = catalog.stored_rows, Layout(context.config.store.etcd_prefix)
    traced_kv = TracedKV(context.kv, layout, rows, lambda name: go_type(rows.get(name)))
    return TracedRegistry, traced_kv, TracedAdmission(admission)


def _measured(context: ApiServerContext, catalog: Catalog) -> KV:
    """Return the store with metrics of its requests."""
    layout = Layout(context.config.store.etcd_prefix)
    return MeasuredKV(context.kv, layout, catalog.stored_rows, context.clock.real.monotonic, context.metrics)


def _make_reviews(context: ApiServerContext, outgoing: Outgoing, registry: Registry) -> ReviewDependencies:
    services = dict(context.config.admission.webhook_service)
    return ReviewDependencies(
        post=ConversionCaller(outgoing.webhooks, services, registry).post,
        clock=context.clock.real,
        random=context.environment.random,
        metrics=ConversionMetrics(context.metrics),
    )


def _make_journal(context: ApiServerContext) -> Journal:
    """Return the journal, with the entries that a store on a disk has kept; with --history it is as long as that."""
    kv, clock, history = context.kv, context.clock, context.config.store.history
    is_durable = isinstance(kv, DurableStore)
    if history is None:
        journal = Journal(clock, keeps_notes=is_durable)
    else:
        journal = Journal(
            clock, max_entries=sys.maxsize, max_bytes=journal_bytes(history), keeps_notes=is_durable
        )
        if isinstance(kv, EmbeddedStore):
            kv.on_compacted.append(journal.forget_before)
    if isinstance(kv, DurableStore):
        journal.restore(kv.take_notes())
    return journal


def _kind_rules(config: Config, schemas: Schemas, catalog: Catalog, clock: Clock) -> KindRules:
    minor, kinds = config.features.kubernetes_version, catalog.kinds
    rules_type = KindRules if config.admission.allow_privileged else UnprivilegedRules
    rules = rules_type(Defaulter(schemas, clock=clock, kinds=kinds), kinds)
    if minor != minors.NEWEST:
        from mockube.apiserver.kinds.minors.go_values import format_values_of  # noqa: PLC0415 - only older minors need it

        format_values_of(rules, minor)
    return rules


def _scheme(schemas: Schemas, catalog: Catalog, rules: KindRules) -> Scheme:
    return Scheme(
        schemas=AllSchemas(schemas, catalog),
        decoder=AllDecoder(schemas, catalog),
        rules=AllRules(rules, catalog),
        strategies=catalog.kinds.strategies,
        version_strategies=catalog.version_strategies,
        conversions=catalog.conversions,
        prepare=catalog.prepare,
    )


def _allocators(context: ApiServerContext) -> Allocators:
    config = context.config
    networks = tuple(map(ip_network, config.services.service_cluster_ip_range))
    services = ServiceAllocator(networks=networks, node_ports=config.services.service_node_port_range)
    event_leases = LeaseManager(context.kv, clock=context.clock, seconds=config.store.event_ttl)
    return Allocators(by_resource={SERVICES: services}, lease_managers=dict.fromkeys(EVENTS, event_leases))

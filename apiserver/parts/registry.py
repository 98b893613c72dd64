"""The registry over a store: the watch cache, what decodes, checks and converts objects, and the allocators."""

import sys
from ipaddress import ip_network

from mockube.apimachinery.groups import SERVICES, GroupResource
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.schema.model import Schemas
from mockube.apiserver.allocation.services import ServiceAllocator
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.config.history import journal_bytes
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.registries import AllDecoder, AllRules, AllSchemas
from mockube.apiserver.kinds.apiextensions import v1beta1
from mockube.apiserver.kinds.kind_rules import Defaulter, KindRules, UnprivilegedRules
from mockube.apiserver.registry.registry import Admission, Allocators, Registry, Scheme
from mockube.apiserver.storage.journal import Journal
from mockube.apiserver.storage.lease_manager import LeaseManager
from mockube.apiserver.storage.shapes import TypeCheckedReader
from mockube.apiserver.storage.stored_object import Layout
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.clock import Clock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV

from .environment import ServerEnvironment
from .tracing import traced_parts

EVENTS = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
"""The resource of events, which two groups serve."""


def make_registry(  # noqa: PLR0913 - each argument is a part
    config: Config,
    environment: ServerEnvironment,
    kv: KV,
    catalog: Catalog,
    rights: Rights,
    admission: Admission,
    *,
    journal: Journal | None = None,
    is_traced: bool = False,
) -> Registry:
    schemas, layout = builtin.load(config.features.kubernetes_version), Layout(config.store.etcd_prefix)
    read = TypeCheckedReader(schemas, {v1beta1.HEAD: v1beta1.to_v1}).read
    make, stored, admitted = Registry, kv, admission
    if is_traced:
        make, stored, admitted = traced_parts(config, kv, catalog, admission)
    return make(
        kv=stored,
        layout=layout,
        watch_cache=WatchCache(kv, layout.root, clock=environment.clock, read=read),
        clock=environment.clock,
        random=environment.random,
        journal=journal or Journal(environment.clock),
        local_ports=environment.local_ports,
        rows=catalog.stored_rows,
        gates=config.features.gates,
        scheme=_scheme(schemas, catalog, _kind_rules(config, schemas, catalog, environment.clock)),
        admission=admitted,
        allocators=_allocators(config, kv, environment.clock),
        authorization=rights.authorization,
        watch_list=config.features.gates.is_on("WatchList"),
    )


def make_journal(config: Config, kv: KV, clock: Clock) -> Journal:
    """Return the journal, with the entries that a store on a disk has kept; with --history it is as long as that."""
    history, is_durable = config.store.history, isinstance(kv, DurableStore)
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


def _allocators(config: Config, kv: KV, clock: Clock) -> Allocators:
    networks = tuple(map(ip_network, config.services.service_cluster_ip_range))
    services = ServiceAllocator(networks=networks, node_ports=config.services.service_node_port_range)
    event_leases = LeaseManager(kv, clock=clock, seconds=config.store.event_ttl)
    return Allocators(by_resource={SERVICES: services}, lease_managers=dict.fromkeys(EVENTS, event_leases))

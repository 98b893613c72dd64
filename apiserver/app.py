"""The one place that wires the API server together."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from prometheus_client import CollectorRegistry, ProcessCollector

from apimachinery.chance import Chance, SystemChance
from apimachinery.clock import Clock, RealClock
from apimachinery.groups import GroupKind, GroupResource, GroupVersion
from apimachinery.schema import builtin
from apimachinery.schema.model import Schemas
from apiserver.admission.chain import PLUGINS, Admission
from apiserver.admission.plugin import name_of
from apiserver.aggregation.availability import Availability
from apiserver.allocation.services import SERVICES, ServiceAllocator
from apiserver.authn.wiring import Trust, authenticators
from apiserver.authz.chain import AlwaysAllow, Authorization
from apiserver.authz.reserved import Reserved
from apiserver.crd.catalog import Catalog, Name
from apiserver.crd.establishing import Establishing
from apiserver.crd.faces import AllDecoder, AllRules, AllSchemas
from apiserver.crd.packs import packed
from apiserver.defaults.defaulter import Defaulter
from apiserver.discovery.openapi.documents import Documents
from apiserver.http import snapshots
from apiserver.http.health import Check, ping
from apiserver.http.openapi import openapi_pages
from apiserver.http.openid import openid_pages
from apiserver.http.pages import Pages, Renewed, api_pages, metrics_page, with_index
from apiserver.http.probe import probe
from apiserver.http.render import Renderer
from apiserver.http.senders import Senders
from apiserver.http.server import Handler, Routes
from apiserver.observe.audit import Audit
from apiserver.observe.audit_policy import EVERYTHING
from apiserver.observe.audit_policy import read as read_policy
from apiserver.observe.consistency import ConsistencyMetrics
from apiserver.observe.objects import ObjectMetrics
from apiserver.observe.observer import Observer
from apiserver.observe.requests import RequestMetrics
from apiserver.packs.lookup import webhooks
from apiserver.resources.catalog import GROUPS
from apiserver.resources.columns.lookup import printer_of_kind
from apiserver.resources.conversion.lookup import CONVERSIONS
from apiserver.resources.spec import Resource
from apiserver.resources.strategies.lookup import STRATEGIES
from apiserver.rest.backend import Backend
from apiserver.rest.component_statuses import ComponentStatuses
from apiserver.rest.reviews.lookup import with_reviews
from apiserver.rules import KindRules, UnprivilegedRules
from apiserver.settings import Settings
from apiserver.storage.expiry import Expiry
from apiserver.storage.keys import Layout
from apiserver.storage.mirror import Mirror
from apiserver.storage.self_check import SelfCheck
from apiserver.storage.stored import Tree
from apiserver.storage.values import read_value
from apiserver.wire.table import Printer
from etcd.errors import KVError
from etcd.kv import KV

API_SERVICES = ("apiregistration.k8s.io", "v1", "apiservices")


EVENTS = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
"""One resource under two names."""


def catalog() -> Mapping[Name, Resource]:
    """Every resource by group, version and name."""
    return {(row.group, row.version, row.name): row for group in GROUPS for row in group.resources}


def _catalog(settings: Settings, schemas: Schemas) -> Catalog:
    made = Catalog(GROUPS, strategies=STRATEGIES, conversions=CONVERSIONS)
    for customs in packed(settings.packs, schemas):
        made.add(customs)
    return made


def _audit(settings: Settings, clock: Clock, chance: Chance) -> Audit | None:
    if settings.audit_log is None:
        return None
    policy = EVERYTHING if settings.audit_policy is None else read_policy(settings.audit_policy)
    return Audit(settings.audit_log, policy, clock=clock, chance=chance)


def _admission(settings: Settings, catalog: Catalog) -> Admission:
    plugins = [one for one in PLUGINS if name_of(one) not in settings.disabled_plugins]
    return Admission([*plugins, *webhooks(settings.packs, catalog)])


def _backend(
    kv: KV, catalog: Catalog, schemas: Schemas, settings: Settings, *, clock: Clock, chance: Chance
) -> Backend:
    layout = Layout(settings.prefix)
    rules = KindRules if settings.allow_privileged else UnprivilegedRules
    mirror = Mirror(kv, layout.root, clock=clock, read=read_value)
    services = ServiceAllocator(
        networks=settings.service_cluster_ip_ranges, node_ports=settings.service_node_ports
    )
    return Backend(
        kv=kv,
        layout=layout,
        mirror=mirror,
        schemas=AllSchemas(schemas, catalog),
        decoder=AllDecoder(schemas, catalog),
        clock=clock,
        chance=chance,
        admission=_admission(settings, catalog),
        rules=AllRules(rules(Defaulter(schemas, clock=clock)), catalog),
        read_value=read_value,
        rows=catalog.stored_rows,
        strategies=catalog.strategies,
        conversions=catalog.conversions,
        claimants={SERVICES: services},
        watch_list=settings.watch_list,
        expiry=dict.fromkeys(EVENTS, Expiry(kv, clock=clock, seconds=settings.event_ttl)),
    )


class ApiServer:
    """A server over a store: `handler.server` is what a socket is given."""

    def __init__(
        self,
        kv: KV,
        *,
        trust: Trust,
        settings: Settings | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        clock, chance, settings = clock or RealClock(), chance or SystemChance(), settings or Settings()
        schemas = builtin.load()
        self.catalog = _catalog(settings, schemas)
        self.resources: Mapping[Name, Resource] = self.catalog.rows
        self.backend = _backend(kv, self.catalog, schemas, settings, clock=clock, chance=chance)
        self.on_restored: list[Callable[[], Awaitable[None]]] = []
        """Awaited when a snapshot has taken the place of all that was stored."""
        self.stopping = False
        """Requests are still answered, but no new client should come."""
        self.audit = _audit(settings, clock, chance)
        mirror = self.backend.mirror
        self._shelves: dict[bytes, GroupResource] = {}
        self._claim_shelves()
        self.catalog.on_change.append(self._claim_shelves)
        self._consistency = ConsistencyMetrics(self._shelves)
        self.self_check = SelfCheck(kv, mirror, clock=clock, count=self._consistency.count)
        self.handler = self._handler(trust, settings)
        mirror.on_reset.append(self.handler.watching.expire_all)
        self._mirroring: asyncio.Task[None] | None = None

    def _handler(self, trust: Trust, settings: Settings) -> Handler:
        backend, requests = self.backend, RequestMetrics()
        authorization = Authorization((Reserved(), AlwaysAllow()))
        known = authenticators(trust, self._find_core, clock=backend.clock, chance=backend.chance)
        others = {
            **openid_pages(known.accounts, address=settings.address),
            "/metrics": metrics_page(self._metrics(requests)),
            snapshots.PATH: snapshots.page(backend, self.on_restored),
        }
        pages = Renewed(lambda: with_index({**self._pages(settings.address), **others}))
        self.catalog.on_change.append(pages.outdate)
        routes = Routes(
            resources=self._find_row,
            verbs=ComponentStatuses(probe).among(with_reviews(known.bearer, authorization, known.accounts)),
            pages=pages,
        )
        return Handler(
            backend,
            routes,
            senders=Senders(known.chain, authorization),
            renderer=Renderer(self._printer, backend.clock),
            settings=settings,
            observer=Observer(requests, self.audit, clock=backend.clock, resources=self._find_row),
        )

    def _pages(self, address: str) -> Pages:
        """What tells of all that is served."""
        catalog = self.catalog
        return {
            **api_pages(catalog.groups, self._checks(), address=address),
            **openapi_pages(Documents(catalog.rows.values(), catalog.customs)),
        }

    def _claim_shelves(self) -> None:
        """Keep the objects of every resource at hand, those of custom ones that have just come included."""
        layout = self.backend.layout
        for name, row in self.backend.rows.items():
            prefix = layout.shelf(row)
            if prefix not in self._shelves:
                self.backend.mirror.shelf(prefix)
                self._shelves[prefix] = name

    def _metrics(self, requests: RequestMetrics) -> CollectorRegistry:
        registry = CollectorRegistry()
        for collector in (requests, ObjectMetrics(self._counts), self._consistency):
            registry.register(collector)
        ProcessCollector(registry=registry)
        return registry

    def _find_row(self, group: str, version: str, name: str) -> Resource | None:
        return self.resources.get((group, version, name))

    def _printer(self, api_version: str, kind: str) -> Printer:
        custom = self.catalog.custom_kind(api_version, kind)
        group = GroupVersion.parse(api_version).group
        return printer_of_kind(GroupKind(group, kind)) if custom is None else custom.printer

    def _counts(self) -> Mapping[str, int]:
        shelves = self.backend.mirror.shelves()
        root = self.backend.layout.root
        return {shelf.prefix.removeprefix(root).decode().strip("/"): len(shelf) for shelf in shelves}

    async def _find_core(self, resource: str, namespace: str, name: str) -> Tree | None:
        found = await self.backend.find(self.resources["", "v1", resource], namespace, name)
        return None if found is None else found.tree()

    def _checks(self) -> Mapping[str, Check]:
        async def store() -> str:
            try:
                await self.backend.kv.status()
            except KVError as error:
                return str(error)
            return ""

        async def mirror() -> str:
            return "" if self.backend.mirror.revision else "not synced"

        async def shutdown() -> str:
            return "process is shutting down" if self.stopping else ""

        return {"ping": ping, "etcd": store, "informer-sync": mirror, "shutdown": shutdown}

    async def __aenter__(self) -> Self:
        self._mirroring = asyncio.create_task(self.backend.mirror.run(), name="mirror")
        await self.backend.mirror.wait_listed()
        core, aggregated = self.resources["", "v1", "services"], self.resources[API_SERVICES]
        availability = Availability(self.backend, aggregated, core)
        self._judging = asyncio.create_task(availability.run(), name="availability of API services")
        establishing = Establishing(self.backend, self.catalog)
        await establishing.catch_up()
        self._establishing = asyncio.create_task(establishing.run(), name="custom resource definitions")
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in (self._establishing, self._judging, self._mirroring):
            assert task is not None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self.audit is not None:
            self.audit.close()

"""The one place that wires the API server together."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Self

from apimachinery.chance import Chance, SystemChance
from apimachinery.clock import Clock, RealClock
from apimachinery.groups import GroupResource
from apimachinery.schema import builtin
from apimachinery.schema.decode import Decoder
from apiserver.admission.chain import Admission
from apiserver.allocation.services import SERVICES, ServiceAllocator
from apiserver.authn.chain import Authentication
from apiserver.defaults.defaulter import Defaulter
from apiserver.discovery.openapi.documents import Documents
from apiserver.http.health import Check, ping
from apiserver.http.openapi import openapi_pages
from apiserver.http.pages import all_pages
from apiserver.http.render import Renderer
from apiserver.http.server import Handler
from apiserver.resources.catalog import GROUPS
from apiserver.resources.columns.lookup import printer
from apiserver.resources.conversion.lookup import CONVERSIONS
from apiserver.resources.spec import Resource
from apiserver.resources.strategies.lookup import STRATEGIES
from apiserver.rest.backend import Backend
from apiserver.rest.call import User
from apiserver.rules import KindRules
from apiserver.storage.keys import Layout
from apiserver.storage.mirror import Mirror
from apiserver.storage.values import read_value
from etcd.errors import KVError
from etcd.kv import KV

SERVICE_CLUSTER_IP_RANGES = (ip_network("10.0.0.0/16"),)
SERVICE_NODE_PORTS = range(30000, 32768)


def catalog() -> Mapping[tuple[str, str, str], Resource]:
    """Every resource by group, version and name."""
    return {(row.group, row.version, row.name): row for group in GROUPS for row in group.resources}


def _stored_rows(rows: Iterable[Resource]) -> Mapping[GroupResource, Resource]:
    """The rows of the versions that objects are stored in."""
    return {row.group_resource: row for row in rows if row.storage_version in (None, row.group_version)}


class ApiServer:
    """A server over a store: `handler.server` is what a socket is given."""

    def __init__(
        self,
        kv: KV,
        *,
        tokens: Mapping[str, User],
        clock: Clock | None = None,
        chance: Chance | None = None,
        prefix: str = "/registry",
        address: str = "127.0.0.1:6443",
    ) -> None:
        clock, schemas = clock or RealClock(), builtin.load()
        layout, resources = Layout(prefix), catalog()
        services = ServiceAllocator(networks=SERVICE_CLUSTER_IP_RANGES, node_ports=SERVICE_NODE_PORTS)
        mirror = Mirror(kv, layout.root, clock=clock, read=read_value)
        for row in resources.values():
            mirror.shelf(layout.shelf(row))
        self.backend = Backend(
            kv=kv,
            layout=layout,
            mirror=mirror,
            schemas=schemas,
            decoder=Decoder(),
            clock=clock,
            chance=chance or SystemChance(),
            admission=Admission(),
            rules=KindRules(Defaulter(schemas, clock=clock)),
            read_value=read_value,
            rows=_stored_rows(resources.values()),
            strategies=STRATEGIES,
            conversions=CONVERSIONS,
            claimants={SERVICES: services},
        )
        self.resources = resources
        self.stopping = False
        """Requests are still answered, but no new client should come."""
        self.handler = Handler(
            self.backend,
            resources=lambda group, version, name: resources.get((group, version, name)),
            pages={
                **all_pages(GROUPS, self._checks(), address=address),
                **openapi_pages(Documents(resources.values())),
            },
            authentication=Authentication(tokens),
            renderer=Renderer(printer),
        )
        self._mirroring: asyncio.Task[None] | None = None

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
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._mirroring is not None
        self._mirroring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._mirroring

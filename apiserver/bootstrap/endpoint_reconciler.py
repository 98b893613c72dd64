"""The endpoints of the Service `kubernetes`: the addresses of all API servers that share a store.

Each server stores its address under a lease, which expires if the server does not renew it. Each server writes the stored
addresses into the Endpoints and the EndpointSlice. Upstream: pkg/controlplane/reconcilers/lease.go.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Final

import orjson

from mockube.apimachinery import wellknown
from mockube.apimachinery.status import ApiError
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import MASTER_LEASES
from mockube.component_base.clock import Clock
from mockube.etcd.errors import KVError, LeaseNotFound
from mockube.etcd.kv import NO_LEASE, Delete, Put, Range, Txn, prefix_end

from .cluster import SERVICE
from .ensure import SERVER, USER_AGENT, ensure
from .required_object import GroupVersionResource, RequiredObject

LOG = logging.getLogger(__name__)

ENDPOINTS: Final[GroupVersionResource] = ("", "v1", "endpoints")
ENDPOINT_SLICES: Final[GroupVersionResource] = ("discovery.k8s.io", "v1", "endpointslices")
LEASE_SECONDS, RECONCILE_SECONDS = 15, 10.0
_AUTHOR: Final = Author(user=SERVER.name, agent=USER_AGENT, verb="update")
_REMOVER: Final = Author(user=SERVER.name, agent=USER_AGENT, verb="delete")


class EndpointReconciler:
    def __init__(
        self,
        registry: Registry,
        resources: Callable[[GroupVersionResource], Resource],
        *,
        address: str,
        port: int,
    ) -> None:
        self._registry = registry
        self._resources = resources
        self._port = port
        self._folder = registry.layout.root + MASTER_LEASES
        self._key = self._folder + address.encode()
        subsets = [{"addresses": [{"ip": address}]}]
        tree = {"kind": "Endpoints", "apiVersion": "v1", "metadata": {}, "subsets": subsets}
        self._value = orjson.dumps(tree)
        self._lease = NO_LEASE
        self._is_removed = False
        self._lock = asyncio.Lock()
        """Prevents a write by `reconcile` after that of `remove`."""

    async def run(self, clock: Clock) -> None:
        """Reconcile at intervals, until cancelled."""
        while True:
            await clock.renewals.sleep(RECONCILE_SECONDS)
            try:
                await self.reconcile()
            except (ApiError, KVError) as error:
                LOG.warning("The endpoints of the service kubernetes were not reconciled: %s", error)

    async def reconcile(self) -> None:
        """Renew the lease of this server, and write the addresses of all servers."""
        async with self._lock:
            if not self._is_removed:
                await self._renew()
                await self._write(await self._addresses())

    async def remove(self) -> None:
        """Remove this server's address, so that clients do not connect to it any more."""
        async with self._lock:
            self._is_removed = True  # a reconciliation that waits for the lock must not add it again
            try:
                if self._lease != NO_LEASE:
                    # The revision of a revoked lease would have no author; a lease without keys expires without one.
                    await self._registry.commit(Txn(then=(Delete(key=self._key),)), _REMOVER)
                await self._write(await self._addresses())
            except (ApiError, KVError) as error:
                LOG.warning("This server was not removed from the service kubernetes: %s", error)

    async def _renew(self) -> None:
        kv = self._registry.kv
        if self._lease != NO_LEASE:
            try:
                await kv.keep_alive(self._lease)
            except LeaseNotFound:
                self._lease = NO_LEASE
        if self._lease == NO_LEASE:
            self._lease = (await kv.grant(LEASE_SECONDS)).id
        elif (await kv.range(Range(key=self._key, keys_only=True))).kvs:
            return
        # The lease is new, or a snapshot that was restored has removed the key.
        put = Put(key=self._key, value=self._value, lease=self._lease)
        await self._registry.commit(Txn(then=(put,)), _AUTHOR)

    async def _addresses(self) -> Sequence[str]:
        stored = Range(key=self._folder, range_end=prefix_end(self._folder), keys_only=True)
        kvs = (await self._registry.kv.range(stored)).kvs
        return [kv.key.removeprefix(self._folder).decode() for kv in kvs]

    async def _write(self, addresses: Sequence[str]) -> None:
        await ensure(self._registry, self._resources, _objects(addresses, self._port))


def _objects(addresses: Sequence[str], port: int) -> Iterable[RequiredObject]:
    ports = [{"name": "https", "protocol": "TCP", "port": port}]
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": ports}
    yield RequiredObject(
        resource=ENDPOINTS,
        name=SERVICE,
        namespace=wellknown.NAMESPACE_DEFAULT,
        content={
            "metadata": {"labels": {wellknown.LABEL_ENDPOINT_SLICE_SKIP_MIRROR: "true"}},
            "subsets": [subset] if addresses else [],
        },
        is_reconciled=True,
    )
    yield RequiredObject(
        resource=ENDPOINT_SLICES,
        name=SERVICE,
        namespace=wellknown.NAMESPACE_DEFAULT,
        content={
            "metadata": {"labels": {wellknown.LABEL_SERVICE_NAME: SERVICE}},
            "addressType": f"IPv{ip_address(addresses[0]).version}" if addresses else "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
            "ports": ports,
        },
        is_reconciled=True,
    )

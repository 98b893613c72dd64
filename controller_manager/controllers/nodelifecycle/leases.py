"""Reads of Leases from the server: a node is not marked because the cache of this manager lags behind."""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.wellknown import NAMESPACE_NODE_LEASE
from mockube.client.kinds import LEASES
from mockube.client.resources import Key
from mockube.controller_manager.control.runnable import Context

_GATE: Final = "NodeControllerLeaseCircuitBreaker"


class StaleLeaseError(Exception):
    """The server has a newer Lease than the cache."""


class LeaseReader:
    """Compares the Leases of nodes that seem to be silent with the server's, with the feature gate for it.

    After one difference no Lease in the cache is trusted until the cache has reached the revision of the newer one.
    """

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._leases = context.informers.of(LEASES)
        self._is_on = context.informers.caches.gates.is_on(_GATE)
        self._revision = 0
        """The revision that the cache has to reach."""

    @property
    def is_behind(self) -> bool:
        return self._leases.revision < self._revision

    async def check(self, node: str, version: str) -> None:
        """Raise an error if the server has another version of a node's Lease, or cannot return it.

        A missing Lease is no error: the node has none, or is gone.
        """
        if not self._is_on:
            return
        try:
            lease = await self._client.get(LEASES, Key(NAMESPACE_NODE_LEASE, node))
        except NotFound:
            return
        newer = meta.resource_version(lease)
        if newer != version:
            self._revision = int(newer)
            raise StaleLeaseError(
                f"its Lease in the cache has version {version or 0}, the server has {newer}"
            )

"""Leases of the store, by which objects such as Events expire.

Many objects share one lease, because a lease for each object would cost the store more than the object.
"""

import math

from mockube.component_base.clock import Clock
from mockube.etcd.kv import KV, NO_LEASE

SHARED_SECONDS = 60
"""How long new objects share a lease; its TTL is longer by this time, so that the last object has its full TTL."""
SHARED_OBJECTS = 1_000
"""Upstream's bound: a lease that ends deletes all of its objects in one revision."""


class LeaseManager:
    """Grants leases for objects with a time to live."""

    def __init__(self, kv: KV, *, clock: Clock, seconds: float) -> None:
        self._kv = kv
        self._clock = clock
        self._seconds = seconds
        self._lease = NO_LEASE
        self._leased_objects = 0
        self._until = 0.0

    async def lease(self) -> int:
        """Return the lease for an object that is written now."""
        if (
            self._lease == NO_LEASE
            or self._leased_objects >= SHARED_OBJECTS
            or self._clock.monotonic() >= self._until
        ):
            granted = await self._kv.grant(math.ceil(self._seconds + SHARED_SECONDS))
            self._lease, self._leased_objects = granted.id, 0
            self._until = self._clock.monotonic() + SHARED_SECONDS
        self._leased_objects += 1
        return self._lease

"""Objects that are forgotten by themselves, such as events: the store deletes them with the lease they are put under.

One lease serves many objects, for a lease of its own for each would cost the store more than the object does.
"""

import math

from apimachinery.clock import Clock
from etcd.kv import KV, NO_LEASE

SHARED_SECONDS = 60
"""For so long a lease is given to new objects; it lasts as much longer, so that the last of them has all its time."""
SHARED_OBJECTS = 1_000
"""Upstream's bound: a lease that ends deletes all of its objects in one revision."""


class Expiry:
    """Leases for objects that last for some seconds."""

    def __init__(self, kv: KV, *, clock: Clock, seconds: float) -> None:
        self._kv = kv
        self._clock = clock
        self._seconds = seconds
        self._lease = NO_LEASE
        self._given = 0
        self._until = 0.0

    async def lease(self) -> int:
        """The lease for an object that is written now."""
        if self._lease == NO_LEASE or self._given >= SHARED_OBJECTS or self._clock.monotonic() >= self._until:
            granted = await self._kv.grant(math.ceil(self._seconds + SHARED_SECONDS))
            self._lease, self._given = granted.id, 0
            self._until = self._clock.monotonic() + SHARED_SECONDS
        self._given += 1
        return self._lease

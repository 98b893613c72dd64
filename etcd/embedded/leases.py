"""The existing leases, with their deadlines and keys.

The table has no clock: deadlines are numbers, and `store.py` revokes expired leases. A restart drops deadlines, so every
lease then starts again with its full TTL, as in etcd after a change of the leader.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from mockube.etcd.errors import InvalidRequest, LeaseExists, LeaseNotFound
from mockube.etcd.kv import NO_LEASE, Lease, LeaseId

MAX_TTL = 9_000_000_000
"""The maximum TTL in seconds, as in etcd."""


class _Lease:
    __slots__ = ("deadline", "is_kept_alive", "keys", "ttl")

    def __init__(self, ttl: int, deadline: float) -> None:
        self.ttl = ttl
        self.deadline = deadline
        self.is_kept_alive = False
        """Whether somebody has renewed it, who does so again before it expires."""
        self.keys: set[bytes] = set()


class Leases:
    """The leases of one store."""

    __slots__ = ("_granted",)

    def __init__(self) -> None:
        self._granted: dict[LeaseId, _Lease] = {}

    def __contains__(self, lease: LeaseId) -> bool:
        return lease in self._granted

    def __iter__(self) -> Iterator[LeaseId]:
        return iter(self._granted)

    def grant(self, lease: LeaseId, ttl: int, now: float) -> None:
        if lease in self._granted:
            raise LeaseExists(f"lease {lease} already exists")
        if not 0 < ttl <= MAX_TTL:
            raise InvalidRequest(f"a lease's TTL must be from 1 to {MAX_TTL} seconds, not {ttl}")
        self._granted[lease] = _Lease(ttl, now + ttl)

    def renew(self, lease: LeaseId, now: float) -> None:
        granted = self._find(lease)
        granted.deadline = now + granted.ttl
        granted.is_kept_alive = True

    def revoke(self, lease: LeaseId) -> None:
        """Remove a lease. The caller has already deleted its keys."""
        self._find(lease)
        del self._granted[lease]

    def move(self, key: bytes, old: LeaseId, new: LeaseId) -> None:
        """Detach a key from one lease and attach it to another; a removed lease has no keys."""
        if old in self._granted:
            self._granted[old].keys.discard(key)
        if new in self._granted:
            self._granted[new].keys.add(key)

    def keys(self, lease: LeaseId) -> AbstractSet[bytes]:
        return self._find(lease).keys

    def describe(self, lease: LeaseId, now: float, *, keys: bool = False) -> Lease:
        granted = self._find(lease)
        return Lease(
            id=lease,
            ttl=granted.ttl,
            remaining=max(granted.deadline - now, 0.0),
            keys=sorted(granted.keys) if keys else (),
        )

    def ttls(self) -> dict[LeaseId, int]:
        """Return the granted TTL of each lease."""
        return {lease: granted.ttl for lease, granted in self._granted.items()}

    def expired_leases(self, now: float) -> list[LeaseId]:
        """Return the expired leases in the order of their deadlines."""
        expired = [
            (granted.deadline, lease) for lease, granted in self._granted.items() if granted.deadline <= now
        ]
        return [lease for _, lease in sorted(expired)]

    def next_deadline(self, *, kept_alive: bool) -> float | None:
        """Return when the next lease expires, of those that somebody keeps alive, or of all others."""
        deadlines = (
            granted.deadline for granted in self._granted.values() if granted.is_kept_alive is kept_alive
        )
        return min(deadlines, default=None)

    def fresh_id(self) -> LeaseId:
        """Return an id that no existing lease has."""
        return max(self._granted, default=NO_LEASE) + 1

    def _find(self, lease: LeaseId) -> _Lease:
        granted = self._granted.get(lease)
        if granted is None:
            raise LeaseNotFound(f"lease {lease} not found")
        return granted

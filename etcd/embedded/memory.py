"""The embedded store without a disk: writes take effect at once and are lost with the process."""

from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import Lease, LeaseId, Revision

BURST = 256
"""After so many changes the caller yields to the event loop, so that a writer does not block readers."""


class MemoryStore(EmbeddedStore):
    backend = "memory"

    _since_turn = 0

    async def _settle(self) -> None:
        if self._core.revision == self._hub.revision:
            return
        self._hub.publish(self._core.revision)
        self._since_turn += 1
        if self._since_turn >= BURST:
            await self._hub.turn()
            self._since_turn = 0

    def _record_grant(self, lease: LeaseId, ttl: int) -> None:
        """Nothing to record: only the table in memory changes."""

    def _record_revocation(self, lease: Lease) -> None:
        """Nothing to record."""

    async def _record_compaction(self, revision: Revision) -> None:
        """Nothing to record."""

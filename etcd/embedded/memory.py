"""The embedded store without a disk: what is done counts at once, and is gone with the process."""

from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import Lease, LeaseId, Revision

BURST = 256
"""Changes made before the caller waits for a turn of the event loop, so that no writer starves the readers."""


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
        """Nothing to record: the table is all there is."""

    def _record_revocation(self, lease: Lease) -> None:
        """Nothing to record."""

    async def _record_compaction(self, revision: Revision) -> None:
        """Nothing to record."""

"""The embedded store without a disk: what is done counts at once, and is gone with the process."""

from etcd.embedded.store import EmbeddedStore
from etcd.kv import LeaseId, Revision

BURST = 256
"""Changes made before the caller waits for a turn of the event loop, so that no writer starves the readers."""


class MemoryStore(EmbeddedStore):
    backend = "memory"

    _since_turn = 0

    async def _commit(self, revision: Revision) -> None:
        if revision == self._hub.revision:
            return
        self._hub.publish(revision)
        self._since_turn += 1
        if self._since_turn >= BURST:
            await self._hub.turn()
            self._since_turn = 0

    async def _record_grant(self, lease: LeaseId, ttl: int) -> None:
        """Nothing to record: the table is all there is."""

    async def _record_revocation(self, lease: LeaseId, revision: Revision) -> None:  # noqa: ARG002 - a log needs it
        await self._commit(revision)

    async def _record_compaction(self, revision: Revision) -> None:
        """Nothing to record."""

"""The store of the group: in memory, with revisions of its own and a short history."""

from typing import Final

from mockube.component_base.clock import Clock
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Revision, Txn, TxnResult

HISTORY: Final = 1_000
"""How many revisions are readable, at least. A watch that resumes from an earlier one gets 410."""
_NO_PROGRESS: Final = 3_600.0


class ControlStore(MemoryStore):
    """A store that compacts its own history."""

    def __init__(self, clock: Clock, first_revision: Revision) -> None:
        core = Mvcc()
        self._compacted = first_revision
        core.load(first_revision, (), ())
        super().__init__(clock=clock, core=core, progress_interval=_NO_PROGRESS)

    async def txn(self, request: Txn) -> TxnResult:
        result = await super().txn(request)
        if result.revision - self._compacted > 2 * HISTORY:
            self._compacted = result.revision - HISTORY
            await self.compact(self._compacted)
        return result

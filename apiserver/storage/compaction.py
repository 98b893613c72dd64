"""Compact the store's history.

History older than one to two intervals is compacted. They are those of the machine, so that an advance of the cluster's clock uses up no
history; and no revision is compacted from which on a client still needs the history. If several servers share a store, one of them compacts each time, as
in kube-apiserver: the version of the key `compact_rev_key` counts the compactions, and the server that increments the
count compacts. So kube-apiservers and mockube can share a store.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from mockube.apiserver.user import SERVER
from mockube.component_base.clock import Clock
from mockube.etcd.errors import Compacted, KVError
from mockube.etcd.kv import KV, Compare, Put, Range, RangeResult, Revision, Target, Txn

from .journal import Author, Journal

MIN_TURN, MAX_TURN = 1.0, 60.0
"""The bounds of the seconds between two compactions of what is older than --history."""
LOG = logging.getLogger(__name__)

KEY = b"compact_rev_key"
_AUTHOR = Author(user=SERVER.name, verb="update")


class HistoryAge:
    """Compacts what is older than --history; the journal has the times of revisions. Only one server uses the store."""

    def __init__(self, kv: KV, journal: Journal, *, clock: Clock, seconds: float) -> None:
        self._kv = kv
        self._journal = journal
        self._clock = clock
        self._seconds = seconds

    async def run(self) -> None:
        turn = min(max(self._seconds / 8, MIN_TURN), MAX_TURN)
        while True:
            await self._clock.routine.sleep(turn)
            try:
                await self.turn()
            except KVError as error:
                LOG.warning("History was not compacted, retrying in %.0f s: %s", turn, error)

    async def turn(self) -> None:
        entry = self._journal.newest_at(self._clock.now().timestamp() - self._seconds)
        if entry is not None and entry.revision > (await self._kv.status()).compact_revision:
            await _compact(self._kv, entry.revision)


class Compactor:
    """Compacts at each turn to the revision of the store at the previous turn."""

    def __init__(
        self,
        kv: KV,
        *,
        clock: Clock,
        interval: float,
        journal: Journal | None = None,
        oldest_needed: Callable[[], Revision | None] = lambda: None,
    ) -> None:
        """`oldest_needed` returns the revision from which on a client needs the history; None if none does."""
        self._kv = kv
        self._journal = journal or Journal()
        self._clock = clock.real
        self._oldest_needed = oldest_needed
        self._interval = interval
        self._turns = 0
        """The number of compactions, of any server, that this server has observed."""
        self._revision = 0
        """The revision of the store at the last turn."""

    async def run(self) -> None:
        """Call `turn` at every interval until cancelled; never, for an interval of 0."""
        while self._interval:
            await self._clock.sleep(self._interval)
            try:
                await self.turn()
            except KVError as error:
                LOG.warning("History was not compacted, retrying in %.0f s: %s", self._interval, error)

    async def turn(self) -> None:
        revision, needed = self._revision, self._oldest_needed()
        if needed is not None:
            revision = min(revision, needed)
        count = Txn(
            compare=(Compare(key=KEY, target=Target.VERSION, operand=self._turns),),
            then=(Put(key=KEY, value=b"%d" % revision),),
            otherwise=(Range(key=KEY),),
        )
        result = await self._journal.commit(self._kv, count, _AUTHOR)
        self._revision = result.revision
        if not result.succeeded:
            range_result = result.results[0]
            assert isinstance(range_result, RangeResult)
            self._turns = range_result.kvs[0].version if range_result.kvs else 0
            return
        self._turns += 1
        if revision:
            await _compact(self._kv, revision)
            LOG.debug("History before revision %d was compacted", revision)


async def _compact(kv: KV, revision: Revision) -> None:
    """Compact up to a revision, unless that has happened: the limits of the store itself may have been reached meanwhile."""
    with suppress(Compacted):
        await kv.compact(revision)

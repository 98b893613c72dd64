"""History is forgotten, so that the store does not grow for ever: all that is older than one to two intervals.

Of several servers over one store one does it each time, whichever comes first, as kube-apiserver has it: the key
`compact_rev_key` counts by its version how often it was done, and who raises the count has won. So servers of both
kinds can share a store.
"""

import logging

from apimachinery.clock import Clock
from etcd.errors import KVError
from etcd.kv import KV, Compare, Put, Range, RangeResult, Target, Txn

LOG = logging.getLogger(__name__)

KEY = b"compact_rev_key"


class Compactor:
    """What was the newest revision at the last turn is forgotten at the next."""

    def __init__(self, kv: KV, *, clock: Clock, interval: float) -> None:
        self._kv = kv
        self._clock = clock
        self._interval = interval
        self._turns = 0
        """How often it was done, by whomever, as far as is known here."""
        self._revision = 0
        """The store's newest at the last turn."""

    async def run(self) -> None:
        """Take a turn every interval until cancelled; never, for an interval of 0."""
        while self._interval:
            await self._clock.sleep(self._interval)
            try:
                await self.turn()
            except KVError as error:
                LOG.warning(
                    "History was not compacted, it is tried again in %.0f s: %s", self._interval, error
                )

    async def turn(self) -> None:
        revision = self._revision
        won = await self._kv.txn(
            Txn(
                compare=(Compare(key=KEY, target=Target.VERSION, operand=self._turns),),
                then=(Put(key=KEY, value=b"%d" % revision),),
                otherwise=(Range(key=KEY),),
            )
        )
        self._revision = won.revision
        if not won.succeeded:
            found = won.results[0]
            assert isinstance(found, RangeResult)
            self._turns = found.kvs[0].version if found.kvs else 0
            return
        self._turns += 1
        if revision:
            await self._kv.compact(revision)
            LOG.debug("History before revision %d is forgotten", revision)

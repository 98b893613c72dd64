"""The workload's watchers: they disconnect now and then, and resume where they stopped.

A watcher whose revision is compacted lists and watches from there, as a Kubernetes
client does.
"""

from contextlib import suppress

from mockube.etcd.errors import Closed, Compacted
from mockube.etcd.kv import HEAD, Range, Revision, WatchRequest
from tests.support.seeded import Random
from tests.support.stores.history import Client, RecordedWatch

FURTHEST_FUTURE = 3
"""The maximum number of revisions ahead of the last event at which a watcher may start."""


class CacheWatcher:
    """Follows one interval; `patience` is the maximum number of batches before it disconnects, if it does."""

    def __init__(
        self,
        client: Client,
        interval: tuple[bytes, bytes | None],
        *,
        base: Revision,
        random: Random,
        patience: int | None,
    ) -> None:
        self.client = client
        self.key, self.range_end = interval
        self.base = base
        self.random = random
        self.patience = patience
        self.seen = base
        self.goal: Revision | None = None
        self.watch: RecordedWatch | None = None

    async def follow(self) -> None:
        """Watch until the goal is reached, which `finish` sets."""
        start = self.seen + 1
        while not self._is_done():
            try:
                async with await self.client.watch(self._request(start)) as self.watch:
                    await self._read_some(self.watch)
            except Compacted:
                self.seen = (await self.client.range(Range(key=self.key, range_end=self.range_end))).revision
            except Closed:
                pass  # the store was started again: resume
            finally:
                self.watch = None
            start = await self._next_start()

    async def finish(self, goal: Revision) -> None:
        """Stop when everything up to `goal` has arrived."""
        self.goal = goal
        if self.watch is not None:
            with suppress(Closed):  # it was cancelled, which it will read next
                await self.watch.request_progress()

    def _is_done(self) -> bool:
        return self.goal is not None and self.seen >= self.goal

    def _request(self, start: Revision) -> WatchRequest:
        return WatchRequest(
            key=self.key,
            range_end=self.range_end,
            start_revision=start,
            previous=self.patience is None or self.random.random() < 0.6,
            progress=self.random.random() < 0.5,
        )

    async def _read_some(self, watch: RecordedWatch) -> None:
        batches = 0
        limit = self.random.randint(1, self.patience) if self.patience else None
        if self.goal is not None or self.random.random() < 0.5:
            await watch.request_progress()
        async for batch in watch:
            self.seen = max(self.seen, batch.revision)
            batches += 1
            if self._is_done() or (self.goal is None and batches == limit):
                return

    async def _next_start(self) -> Revision:
        """Return where to resume: right after the last event, or elsewhere, like a client that lost its state."""
        if self.goal is not None or self.patience is None or self.random.random() < 0.6:
            return self.seen + 1
        oldest = (await self.client.status()).compact_revision
        first = self.base + 1
        return self.random.choice(
            (HEAD, first, oldest, max(first, self.seen - 10), self.seen + FURTHEST_FUTURE)
        )

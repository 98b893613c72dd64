"""For how long the watch cache has been behind the store, and what it need not keep any more."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mockube.component_base.clock import Clock
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV

from .folders import Folders
from .progress import CacheProgress

LOG: Final = logging.getLogger(__name__)
LAG_SECONDS: Final = 5.0
"""The interval of comparisons with the store's revision, the same as of an embedded store's progress notifications."""


class CacheLag:
    def __init__(
        self,
        kv: KV,
        folders: Folders,
        progress: CacheProgress,
        request_progress: Callable[[], Awaitable[None]],
        *,
        clock: Clock,
    ) -> None:
        """`request_progress` lets the store send its revision."""
        self._kv = kv
        self._folders = folders
        self._progress = progress
        self._request_progress = request_progress
        self._clock = clock
        self._last_in_sync = clock.real.monotonic()
        """The last time at which the cache was known to have the store's revision."""

    async def run(self) -> None:
        """Compare the store's revision at an interval until cancelled, for `seconds_behind`, and drop old changes."""
        while True:
            await self._clock.real.sleep(LAG_SECONDS)
            for cache in self._folders.caches():
                cache.history.forget_old(self._clock.monotonic())
            try:
                if await self.seconds_behind():
                    # The newer revisions may be of other keys: a progress notification confirms that.
                    await self._request_progress()
            except KVError as error:
                LOG.debug("the revision of the store cannot be read: %s", error)

    async def seconds_behind(self) -> float:
        """Return for how many seconds the cache has been behind the store; 0 if it is not."""
        head, now = (await self._kv.status()).revision, self._clock.real.monotonic()
        if head <= self._progress.revision:
            self._last_in_sync = now
        return now - self._last_in_sync

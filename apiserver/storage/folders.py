"""The resource caches of a store's folders, such as /registry/pods/, and which folder a key is in."""

from collections.abc import Iterator, Sequence

from .progress import CacheProgress
from .resource_cache import ResourceCache


class Folders:
    def __init__(self, root: bytes, progress: CacheProgress) -> None:
        self.root = root
        self._progress = progress
        self._caches: dict[bytes, ResourceCache] = {}
        self._claimed: set[bytes] = set()
        """The folders of served resources."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([*self._caches])

    def claim(self, folder: bytes) -> ResourceCache:
        """Return the cache of a served resource. Folders of one segment must be claimed before the cache runs."""
        self._claimed.add(folder)
        return self.cache(folder)

    def find(self, folder: bytes) -> ResourceCache | None:
        return self._caches.get(folder)

    def cache(self, folder: bytes) -> ResourceCache:
        cache = self._caches.get(folder)
        if cache is None:
            cache = self._caches[folder] = ResourceCache(folder)
            cache.reset((), self._progress.revision)
        return cache

    def caches(self) -> Sequence[ResourceCache]:
        return list(self._caches.values())

    def claimed_caches(self) -> Sequence[ResourceCache]:
        """Return the caches of the served resources."""
        return [self._caches[folder] for folder in self._claimed]

    def of(self, key: bytes) -> bytes:
        """Return the folder of a key: `pods/`, or two segments, as in `services/specs/` and `example.com/widgets/`."""
        first = key.find(b"/", len(self.root)) + 1
        if key[:first] in self._claimed:
            return key[:first]
        return key[: key.find(b"/", first) + 1]

"""The connections that wait for a request: which of them is closed first, and what the parts of their heads hold together."""

from collections.abc import Callable, Hashable

from mockube.component_base.connection_limit import ConnectionLimit

from . import limits


class UnfinishedHeads:
    def __init__(self) -> None:
        self.waiting = ConnectionLimit(limits.MAX_CONNECTIONS)
        self.size = 0
        """The bytes of all heads that are not complete, without the first `SMALL_HEAD` of each."""

    def of(self, connection: Hashable, address: str, close: Callable[[], object]) -> "UnfinishedHead":
        """Return what notes the heads of a connection, which `close` closes to make room for others."""
        return UnfinishedHead(self, connection, address, close)


class UnfinishedHead:
    """The head of one connection."""

    def __init__(
        self, heads: UnfinishedHeads, connection: Hashable, address: str, close: Callable[[], object]
    ) -> None:
        self._heads = heads
        self._connection = connection
        self._address = address
        self._close = close
        self._size = 0

    def begin(self) -> None:
        """Note that the connection waits for a head."""
        self._heads.waiting.add(self._connection, self._address, self._close)

    def has_room(self, size: int) -> bool:
        """Note the bytes of the head that were received; return whether there is memory for it."""
        excess = max(size - limits.SMALL_HEAD, 0)
        self._heads.size += excess - self._size
        self._size = excess
        return not excess or self._heads.size <= limits.ALL_HEADS

    def end(self) -> None:
        """Note that the head is complete, or that the connection has ended."""
        self._heads.waiting.discard(self._connection)
        self.has_room(0)

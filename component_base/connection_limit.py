"""A limit of connections that closes old ones, so that whoever opens many does not keep others out."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple


class _Entry(NamedTuple):
    close: Callable[[], object]
    find_use: Callable[[], float]
    used_at: float
    """When the connection had been used last, when it was looked at."""


def _never() -> float:
    return 0.0


class _OfAddress:
    """The connections of one address, the oldest ones first."""

    def __init__(self) -> None:
        self.idle: OrderedDict[Hashable, _Entry] = OrderedDict()
        self.busy: OrderedDict[Hashable, _Entry] = OrderedDict()
        """Those with a request in progress."""

    def __len__(self) -> int:
        return len(self.idle) + len(self.busy)

    def oldest(self) -> tuple[Hashable, _Entry]:
        """Return the connection that is idle for the longest time, or the oldest one if all are busy."""
        for _ in range(len(self.idle)):  # a use costs a step here, and nothing when it happens
            connection, entry = next(iter(self.idle.items()))
            used_at = entry.find_use()
            if used_at <= entry.used_at:
                break
            self.idle[connection] = entry._replace(used_at=used_at)
            self.idle.move_to_end(connection)
        return next(iter((self.idle or self.busy).items()))


class ConnectionLimit:
    """Connections that anybody can open. When there are too many, the oldest one of the address with most of them is closed.

    Each costs a socket, perhaps a TLS session, and the part of a head that was sent.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._addresses: dict[str, _OfAddress] = {}
        self._address_of: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._address_of)

    def add(
        self,
        connection: Hashable,
        address: str,
        close: Callable[[], object],
        find_use: Callable[[], float] = _never,
    ) -> None:
        """Add a connection, or make it the youngest one; `find_use` returns when it was used last, which makes it younger."""
        self.discard(connection)
        while len(self._address_of) >= self.maximum:
            self.evict()
        self._address_of[connection] = address
        entry = _Entry(close, find_use, find_use())
        self._addresses.setdefault(address, _OfAddress()).idle[connection] = entry

    def discard(self, connection: Hashable) -> None:
        """Remove a connection that is lost, or counts no more."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            of_address = self._addresses[address]
            if of_address.idle.pop(connection, None) is None:
                del of_address.busy[connection]
            if not of_address:
                del self._addresses[address]

    def note_request(self, connection: Hashable, *, has_request: bool) -> None:
        """Note that a request of a connection begins or has ended: those with one are evicted last."""
        address = self._address_of.get(connection)
        if address is None:
            return
        found = self._addresses[address]
        source, target = (found.idle, found.busy) if has_request else (found.busy, found.idle)
        entry = source.pop(connection, None)
        if entry is not None:
            target[connection] = entry

    def evict(self) -> None:
        """Close the oldest connection of the address that has most connections, if there is any."""
        if not self._addresses:
            return
        connection, entry = max(self._addresses.values(), key=len).oldest()
        self.discard(connection)
        entry.close()

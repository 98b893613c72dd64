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


class ConnectionLimit:
    """Connections that anybody can open. When there are too many, the oldest one of the address with most of them is closed.

    Each costs a socket, perhaps a TLS session, and the part of a head that was sent.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._addresses: dict[str, OrderedDict[Hashable, _Entry]] = {}
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
        self._addresses.setdefault(address, OrderedDict())[connection] = entry

    def discard(self, connection: Hashable) -> None:
        """Remove a connection that is lost, or counts no more."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            of_address = self._addresses[address]
            del of_address[connection]
            if not of_address:
                del self._addresses[address]

    def evict(self) -> None:
        """Close the oldest connection of the address that has most connections, if there is any."""
        if not self._addresses:
            return
        of_address = max(self._addresses.values(), key=len)
        for _ in range(len(of_address)):  # a use costs a step here, and nothing when it happens
            connection, entry = next(iter(of_address.items()))
            used_at = entry.find_use()
            if used_at <= entry.used_at:
                break
            of_address[connection] = entry._replace(used_at=used_at)
            of_address.move_to_end(connection)
        connection, entry = next(iter(of_address.items()))
        self.discard(connection)
        entry.close()

"""A limit of connections that closes old ones, so that whoever opens many does not keep others out."""

from collections.abc import Callable, Hashable


class ConnectionLimit:
    """Connections that anybody can open. When there are too many, the oldest one of the address with most of them is closed.

    Each costs a socket, perhaps a TLS session, and the part of a head that was sent.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._addresses: dict[str, dict[Hashable, Callable[[], object]]] = {}
        self._address_of: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._address_of)

    def add(self, connection: Hashable, address: str, close: Callable[[], object]) -> None:
        self.discard(connection)
        while len(self._address_of) >= self.maximum:
            self.evict()
        self._address_of[connection] = address
        self._addresses.setdefault(address, {})[connection] = close

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
        connection, close = next(iter(of_address.items()))
        self.discard(connection)
        close()

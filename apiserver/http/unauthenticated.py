"""Connections of which no request has been authenticated and none is being served: how many, and which one is closed.

Until a request of it is authenticated, a connection costs a socket, a TLS session and what is sent of a head, and
anybody who can reach the port can open one.
"""

from collections.abc import Callable, Hashable
from typing import Final

MAX_CONNECTIONS: Final = 4000
"""More than the clients that start together on one machine, fewer than what fills its memory."""


class UnauthenticatedConnections:
    """When there are too many, the oldest one of the address that has most of them is closed."""

    def __init__(self, maximum: int = MAX_CONNECTIONS) -> None:
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
        """Remove a connection that is lost, authenticated, or being served."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            of_address = self._addresses[address]
            del of_address[connection]
            if not of_address:
                del self._addresses[address]

    def evict(self) -> None:
        """Close the oldest connection of the address that has most, if there is any."""
        if not self._addresses:
            return
        of_address = max(self._addresses.values(), key=len)
        connection, close = next(iter(of_address.items()))
        self.discard(connection)
        close()

"""Connections that nobody known uses and that the server does nothing for: how many there may be, and who has to go.

A client is known once a request of it was authenticated. Until then it costs a socket, a TLS session and whatever it
sends of a head, which anybody may take who can reach the port.
"""

from collections.abc import Callable, Hashable
from typing import Final

MOST: Final = 4000
"""More than the clients that start together on one machine, fewer than what fills its memory."""


class Strangers:
    """When there are too many, the one goes that has waited longest, of the address that has most of them."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._addresses: dict[str, dict[Hashable, Callable[[], object]]] = {}
        self._address_of: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._address_of)

    def add(self, stranger: Hashable, address: str, close: Callable[[], object]) -> None:
        self.discard(stranger)
        while len(self._address_of) >= self.most:
            self.evict()
        self._address_of[stranger] = address
        self._addresses.setdefault(address, {})[stranger] = close

    def discard(self, stranger: Hashable) -> None:
        """It is gone, or known, or served."""
        address = self._address_of.pop(stranger, None)
        if address is not None:
            there = self._addresses[address]
            del there[stranger]
            if not there:
                del self._addresses[address]

    def evict(self) -> None:
        """Close the one that has to go, if there is any."""
        if not self._addresses:
            return
        there = max(self._addresses.values(), key=len)
        stranger, close = next(iter(there.items()))
        self.discard(stranger)
        close()

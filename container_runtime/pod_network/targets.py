"""The targets of connections, as numbers that a verdict can give, in the map of the rules."""

import socket
from collections import OrderedDict
from typing import Final

from . import nftables

MAX_TARGETS: Final = 8192
"""The targets in the map; the one that was used longest ago goes first. Its connections continue."""


class Targets:
    def __init__(self, netfilter: socket.socket) -> None:
        self._netfilter = netfilter
        self._numbers: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._next = nftables.FIRST_TARGET

    def number_of(self, address: str, port: int) -> int:
        target = (address, port)
        number = self._numbers.get(target)
        if number is None:
            number = self._next
            self._next = number + 1 if number + 1 < nftables.HAIRPIN else nftables.FIRST_TARGET
            nftables.add_target(self._netfilter, number, address, port)
            self._numbers[target] = number
            if len(self._numbers) > MAX_TARGETS:
                old, old_number = self._numbers.popitem(last=False)
                nftables.remove_target(self._netfilter, old_number, *old)
        else:
            self._numbers.move_to_end(target)
        return number

    def remove(self, addresses: "tuple[str, ...]", port: int | None = None) -> None:
        """Remove the targets at addresses, and forget their connections."""
        for target in [one for one in self._numbers if one[0] in addresses and port in (None, one[1])]:
            number = self._numbers.pop(target)
            nftables.remove_target(self._netfilter, number, *target)
            nftables.forget_connections(self._netfilter, number)

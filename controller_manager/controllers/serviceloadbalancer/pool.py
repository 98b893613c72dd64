"""Which Service has which address of the range for load balancers. Knows no objects."""

from ipaddress import IPv4Network, IPv6Network, ip_address


class AddressInUse(Exception):
    """The address that was asked for is another Service's, or none at all."""


class NoAddressLeft(Exception):
    """Every address of the range is given away."""


class AddressPool:
    """Addresses that were given back are the last to be given away again."""

    def __init__(self, network: IPv4Network | IPv6Network) -> None:
        self._network = network
        self._holders: dict[str, str] = {}
        self._held: dict[str, str] = {}
        self._next = 1

    def __contains__(self, uid: str) -> bool:
        return uid in self._held

    def note(self, uid: str, address: str) -> None:
        """The Service has this address already; of two that have the same the first keeps it."""
        if self._holders.setdefault(address, uid) == uid:
            self._held[uid] = address

    def give(self, uid: str, asked: str) -> str:
        """The Service's address: the one it has, unless another one is asked for, or a new one."""
        if asked and self._held.get(uid) != asked:
            self._check(uid, asked)
            self.release(uid)
            self.note(uid, asked)
        if uid not in self._held:
            self.note(uid, self._free())
        return self._held[uid]

    def release(self, uid: str) -> None:
        address = self._held.pop(uid, None)
        if address is not None:
            del self._holders[address]

    def _check(self, uid: str, asked: str) -> None:
        try:
            ip_address(asked)
        except ValueError as error:
            raise AddressInUse(f"{asked} is not an IP address") from error
        if self._holders.get(asked, uid) != uid:
            raise AddressInUse(f"{asked} is the address of another service")

    def _free(self) -> str:
        """A range's first address is its own, and its last one reaches all."""
        last = self._network.num_addresses - 2
        for _ in range(min(last, len(self._holders) + 1)):
            address = str(self._network.network_address + self._next)
            self._next = self._next % last + 1
            if address not in self._holders:
                return address
        raise NoAddressLeft(f"no address of {self._network} is left")

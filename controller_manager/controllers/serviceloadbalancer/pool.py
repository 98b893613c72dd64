"""The addresses of the range for load balancers, by Service. Independent of objects."""

from ipaddress import IPv4Network, IPv6Network, ip_address


class AddressInUse(Exception):
    """The requested address is another Service's, or invalid."""


class NoAddressLeft(Exception):
    """Every address of the range is allocated."""


class AddressPool:
    """Released addresses are the last to be allocated again."""

    def __init__(self, network: IPv4Network | IPv6Network) -> None:
        self._network = network
        self._holders: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._next = 1

    def __contains__(self, uid: str) -> bool:
        return uid in self._addresses

    def note(self, uid: str, address: str) -> None:
        """Record a Service's address; of two Services with the same one the first keeps it."""
        if self._holders.setdefault(address, uid) == uid:
            self._addresses[uid] = address

    def give(self, uid: str, requested: str) -> str:
        """Return the Service's address: its present one, unless another one is requested, or a new one."""
        if requested and self._addresses.get(uid) != requested:
            self._check(uid, requested)
            self.release(uid)
            self.note(uid, requested)
        if uid not in self._addresses:
            self.note(uid, self._find_free())
        return self._addresses[uid]

    def release(self, uid: str) -> None:
        address = self._addresses.pop(uid, None)
        if address is not None:
            del self._holders[address]

    def _check(self, uid: str, requested: str) -> None:
        try:
            ip_address(requested)
        except ValueError as error:
            raise AddressInUse(f"{requested} is not an IP address") from error
        if self._holders.get(requested, uid) != uid:
            raise AddressInUse(f"{requested} is the address of another service")

    def _find_free(self) -> str:
        """A range's first address is the network's, and its last one is for broadcasts."""
        last = self._network.num_addresses - 2
        for _ in range(min(last, len(self._holders) + 1)):
            address = str(self._network.network_address + self._next)
            self._next = self._next % last + 1
            if address not in self._holders:
                return address
        raise NoAddressLeft(f"no address of {self._network} is left")

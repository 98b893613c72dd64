"""The RangeAllocation object that records node ports, one bit for each; all servers of a store share it."""

import base64
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct, field

from mockube.apimachinery import randomness
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.storage.stored import canonical
from mockube.apiserver.wire.protobuf import envelope
from mockube.etcd.kv import Compare, Put, Range, Target

MIN_STATIC, MAX_STATIC = 16, 128
"""Bounds of the number of ports at the start of the range that are allocated last, so that clients can choose them."""
ALLOCATED = "provided port is already allocated"
FULL = "range is full"


UsedPortLister: TypeAlias = Callable[[], Awaitable[Iterable[int]]]


def key(backend: Backend) -> bytes:
    return backend.layout.root + b"ranges/servicenodeports"


FIRST_DRY_RUN_PORT: Final = 32769


class NodePorts(Struct, kw_only=True):
    """The allocated node ports at one revision, and the changes of one write."""

    ports: range
    used: int
    """A bit for each port; the lowest is the first port of the range."""
    revision: int
    tree: Tree
    draw: Callable[[], float]
    """Returns a random number of at least 0 and less than 1."""
    allocated: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    dry_run: bool = False
    """Nothing is stored. As upstream, a dry run does not check the range, and returns ports that are not reserved."""

    def allocate(self, port: int) -> str:
        """Allocate a port; return why it cannot be allocated, or ""."""
        if self.dry_run and port not in self.ports and port not in self.allocated:
            self.allocated.add(port)
            return ""
        if port not in self.ports and not self.dry_run:
            valid = f"{self.ports[0]}-{self.ports[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        if self._is_used(port):
            return ALLOCATED
        self.allocated.add(port)
        return ""

    def allocate_next(self) -> int:
        """Allocate any free port; return 0 if there is none."""
        if self.dry_run:
            port = max(self.allocated, default=FIRST_DRY_RUN_PORT - 1) + 1
            self.allocated.add(port)
            return port
        static = min(max(MIN_STATIC, len(self.ports) // 32), MAX_STATIC)
        if len(self.ports) <= MIN_STATIC:
            static = 0
        for band in (self.ports[static:], self.ports[:static]):
            free = [port for port in band if not self._is_used(port)]
            if free:
                port = free[int(self.draw() * len(free))]
                self.allocated.add(port)
                return port
        return 0

    def release(self, ports: Iterable[int]) -> None:
        self.released |= {port for port in ports if port in self.ports}

    def release_all_except(self, used_ports: Iterable[int]) -> None:
        """Release every port except these."""
        retained = {*used_ports}
        self.released |= {port for port in self.ports if self._is_used(port) and port not in retained}

    def _is_used(self, port: int) -> bool:
        return port in self.allocated or (
            port in self.ports and bool(self.used >> self.ports.index(port) & 1)
        )

    @property
    def is_changed(self) -> bool:
        return bool(self.allocated or self.released)

    def compare(self, backend: Backend) -> Compare:
        return Compare(key=key(backend), target=Target.MOD, operand=self.revision)

    def put(self, backend: Backend) -> Put:
        """Return the put of the record with this write's allocations and releases."""
        bits = self.used
        for port in self.released:
            bits &= ~(1 << self.ports.index(port))
        for port in self.allocated:
            bits |= 1 << self.ports.index(port)
        data = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode()
        return Put(key=key(backend), value=canonical(self.tree | {"data": data}))


async def read(backend: Backend, ports: range, list_used_ports: UsedPortLister) -> NodePorts:
    """Return the stored record, or a new one of the used ports if none is stored or its range differs."""
    kvs = (await backend.kv.range(Range(key=key(backend)))).kvs
    tree = _decode(kvs[0].value) if kvs else {}
    text = f"{ports[0]}-{ports[-1]}"
    if tree.get("range") == text:
        used = int.from_bytes(base64.b64decode(tree.get("data") or ""), "big")
    else:
        tree = _new_allocation(backend, text)
        used = sum(1 << ports.index(port) for port in {*await list_used_ports()} if port in ports)
    return NodePorts(
        ports=ports,
        used=used,
        revision=kvs[0].mod_revision if kvs else 0,
        tree=tree,
        draw=lambda: randomness.fraction(backend.random),
    )


def _decode(value: bytes) -> Any:
    return envelope.decode(value) if envelope.is_protobuf(value) else orjson.loads(value)


def _new_allocation(backend: Backend, text: str) -> Tree:
    now, uid = format_time(backend.clock.now()), randomness.uid(backend.random)
    metadata = {"uid": uid, "creationTimestamp": now}
    return {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": metadata, "range": text}

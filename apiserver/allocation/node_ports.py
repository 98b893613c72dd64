"""Node ports: the RangeAllocation object that records them, one bit for each, and their allocation for Services."""

import base64
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct, field

from mockube.apimachinery import errors, randomness, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.core.service import strategy
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.storage.stored_object import canonical
from mockube.apiserver.wire.protobuf import envelope
from mockube.etcd.kv import Compare, Put, Range, Target

MIN_STATIC, MAX_STATIC = 16, 128
"""Bounds of the number of ports at the start of the range that are allocated last, so that clients can choose them."""
ALLOCATED = "provided port is already allocated"
FULL = "range is full"


UsedPortLister: TypeAlias = Callable[[], Awaitable[Iterable[int]]]


def _key(backend: Backend) -> bytes:
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
    next_dry_run_port: int = FIRST_DRY_RUN_PORT
    """One more than the highest port of this dry run; without ports, the first that a dry run returns."""
    free: list[list[int]] = field(default_factory=list)
    """The ports of each band that were free at the first random allocation of this write, less those allocated since."""

    def allocate(self, port: int) -> str:
        """Allocate a port; return why it cannot be allocated, or ""."""
        if self.dry_run and port not in self.ports and port not in self.allocated:
            self._add(port)
            return ""
        if port not in self.ports and not self.dry_run:
            valid = f"{self.ports[0]}-{self.ports[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        if self._is_used(port):
            return ALLOCATED
        self._add(port)
        return ""

    def allocate_next(self) -> int:
        """Allocate any free port; return 0 if there is none."""
        if self.dry_run:
            port = self.next_dry_run_port
            self._add(port)
            return port
        self.free = self.free or [self._free_ports(band) for band in self._bands()]
        for ports in self.free:
            while ports:
                port = ports.pop(int(self.draw() * len(ports)))
                if port not in self.allocated:  # the client may have chosen it meanwhile
                    self._add(port)
                    return port
        return 0

    def _add(self, port: int) -> None:
        following = max(0, port) + 1
        self.next_dry_run_port = max(self.next_dry_run_port, following) if self.allocated else following
        self.allocated.add(port)

    def _bands(self) -> Sequence[range]:
        """Return the ports that are allocated first, and those that clients can choose."""
        static = min(max(MIN_STATIC, len(self.ports) // 32), MAX_STATIC)
        if len(self.ports) <= MIN_STATIC:
            static = 0
        return self.ports[static:], self.ports[:static]

    def _free_ports(self, band: range) -> list[int]:
        first = band.start - self.ports.start
        bits = f"{self.used >> first:b}"[::-1]  # one shift for all ports
        return [
            port
            for position, port in enumerate(band)
            if bits[position : position + 1] != "1" and port not in self.allocated
        ]

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
        return Compare(key=_key(backend), target=Target.MOD, operand=self.revision)

    def put(self, backend: Backend) -> Put:
        """Return the put of the record with this write's allocations and releases."""
        bits = self.used
        for port in self.released:
            bits &= ~(1 << self.ports.index(port))
        for port in self.allocated:
            bits |= 1 << self.ports.index(port)
        data = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode()
        return Put(key=_key(backend), value=canonical(self.tree | {"data": data}))


async def read_node_ports(backend: Backend, ports: range, list_used_ports: UsedPortLister) -> NodePorts:
    """Return the stored record, or a new one of the used ports if none is stored or its range differs."""
    kvs = (await backend.kv.range(Range(key=_key(backend)))).kvs
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


# --- allocation for a Service

_PORTS = ROOT.child("spec", "ports")


def allocated_node_ports(spec: Tree) -> frozenset[int]:
    """Return the node ports of a Service, including the one for health checks."""
    allocated = strategy.node_ports(spec) if strategy.needs_node_port(spec) else frozenset()
    health = spec.get("healthCheckNodePort", 0) if strategy.needs_health_check_node_port(spec) else 0
    return allocated | {health} if health else allocated


def allocate_node_ports(
    spec: Tree, record: NodePorts, old_ports: Collection[int], *, is_new: bool
) -> Sequence[FieldError]:
    """Allocate the node ports that the client chose, and free ones for the other ports; return errors."""
    if strategy.needs_node_port(spec) and spec.get("ports"):
        assigned_ports = (
            _allocate_for_new(spec, record) if is_new else _allocate_for_changed(spec, record, old_ports)
        )
        if isinstance(assigned_ports, FieldError):
            return [assigned_ports]
        spec["ports"] = [
            port | {"nodePort": node_port} if node_port else port
            for port, node_port in zip(spec["ports"], assigned_ports, strict=True)
        ]
    if strategy.needs_health_check_node_port(spec):
        _allocate_health_check(spec, record, old_ports)
    return ()


def _allocate_for_new(spec: Tree, record: NodePorts) -> list[int] | FieldError:
    """Return a node port for each port. Ports with one number and several protocols share it, unless the client chose."""
    shared: dict[int, int] = {}
    first_chosen = _first_chosen(spec["ports"])
    assigned_ports = []
    for index, port in enumerate(spec["ports"]):
        number, chosen = port.get("port", 0), port.get("nodePort", 0)
        if not chosen and not strategy.allocates_node_ports(spec):
            assigned_ports.append(0)
            continue
        if number not in shared:
            chosen = chosen or first_chosen.get(number, 0)
        elif chosen in (0, shared[number]):
            assigned_ports.append(shared[number])
            continue
        if chosen and (problem := record.allocate(chosen)):
            return errors.invalid(_PORTS.index(index).child("nodePort"), chosen, problem)
        assigned_ports.append(chosen or _allocate_next(record))
        shared.setdefault(number, assigned_ports[-1])
    return assigned_ports


def _first_chosen(ports: Sequence[Tree]) -> Mapping[int, int]:
    """Return the first node port that the client chose for each number of a port."""
    chosen: dict[int, int] = {}
    for port in ports:
        if port.get("nodePort", 0):
            chosen.setdefault(port.get("port", 0), port["nodePort"])
    return chosen


def _allocate_for_changed(
    spec: Tree, record: NodePorts, old_ports: Collection[int]
) -> list[int] | FieldError:
    assigned_ports: list[int] = []
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(spec["ports"]):
        chosen = port.get("nodePort", 0)
        if not chosen and not strategy.allocates_node_ports(spec):
            assigned_ports.append(0)
            continue
        if chosen and chosen not in old_ports and chosen not in record.allocated:
            problem = record.allocate(chosen)
            if problem:
                return errors.invalid(_PORTS.index(index).child("nodePort"), chosen, problem)
        assigned_ports.append(chosen or _allocate_next(record))
        node_port = port.get("protocol", ""), assigned_ports[-1]
        if node_port in seen:
            raise ApiError(f"duplicate nodePort: {{{node_port[0]} {node_port[1]}}}")
        seen.add(node_port)
    return assigned_ports


def _allocate_next(record: NodePorts) -> int:
    port = record.allocate_next()
    if not port:
        raise status.internal_error(f"failed to allocate a nodePort: {FULL}")
    return port


def _allocate_health_check(spec: Tree, record: NodePorts, old_ports: Collection[int]) -> None:
    chosen = spec.get("healthCheckNodePort", 0)
    if chosen:
        problem = "" if chosen in old_ports else record.allocate(chosen)
        if problem:
            message = f"failed to allocate requested HealthCheck NodePort {chosen}"
            raise status.internal_error(f"{message}: {problem}")
        return
    spec["healthCheckNodePort"] = record.allocate_next()
    if not spec["healthCheckNodePort"]:
        raise status.internal_error(f"failed to allocate a HealthCheck NodePort 0: {FULL}")

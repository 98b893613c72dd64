"""The node ports of a Service: one for each of its ports, and one for health checks if it needs that."""

from collections.abc import Collection, Sequence

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.allocation.ports import FULL, NodePorts
from mockube.apiserver.kinds.core.service.strategy import (
    allocates_node_ports,
    needs_health_check_node_port,
    needs_node_port,
    node_ports,
)

_PORTS = ROOT.child("spec", "ports")


def allocated_node_ports(spec: Tree) -> frozenset[int]:
    """Return the node ports of a Service, including the one for health checks."""
    allocated = node_ports(spec) if needs_node_port(spec) else frozenset()
    health = spec.get("healthCheckNodePort", 0) if needs_health_check_node_port(spec) else 0
    return allocated | {health} if health else allocated


def allocate_node_ports(
    spec: Tree, record: NodePorts, old_ports: Collection[int], *, is_new: bool
) -> Sequence[FieldError]:
    """Allocate the node ports that the client chose, and free ones for the other ports; return errors."""
    if needs_node_port(spec) and spec.get("ports"):
        assigned_ports = (
            _allocate_for_new(spec, record) if is_new else _allocate_for_changed(spec, record, old_ports)
        )
        if isinstance(assigned_ports, FieldError):
            return [assigned_ports]
        spec["ports"] = [
            port | {"nodePort": node_port} if node_port else port
            for port, node_port in zip(spec["ports"], assigned_ports, strict=True)
        ]
    if needs_health_check_node_port(spec):
        _allocate_health_check(spec, record, old_ports)
    return ()


def _allocate_for_new(spec: Tree, record: NodePorts) -> list[int] | FieldError:
    """Return a node port for each port. Ports with one number and several protocols share it, unless the client chose."""
    shared: dict[int, int] = {}
    assigned_ports = []
    for at, port in enumerate(spec["ports"]):
        number, chosen = port.get("port", 0), port.get("nodePort", 0)
        if not chosen and not allocates_node_ports(spec):
            assigned_ports.append(0)
            continue
        if number not in shared:
            chosen = chosen or _first_chosen(spec["ports"], number)
        elif chosen in (0, shared[number]):
            assigned_ports.append(shared[number])
            continue
        if chosen and (problem := record.allocate(chosen)):
            return errors.invalid(_PORTS.index(at).child("nodePort"), chosen, problem)
        assigned_ports.append(chosen or _allocate_next(record))
        shared.setdefault(number, assigned_ports[-1])
    return assigned_ports


def _first_chosen(ports: Sequence[Tree], number: int) -> int:
    chosen = (port.get("nodePort", 0) for port in ports if port.get("port", 0) == number)
    return next(filter(None, chosen), 0)


def _allocate_for_changed(
    spec: Tree, record: NodePorts, old_ports: Collection[int]
) -> list[int] | FieldError:
    assigned_ports: list[int] = []
    seen: set[tuple[str, int]] = set()
    for at, port in enumerate(spec["ports"]):
        chosen = port.get("nodePort", 0)
        if not chosen and not allocates_node_ports(spec):
            assigned_ports.append(0)
            continue
        if chosen and chosen not in old_ports and chosen not in record.allocated:
            problem = record.allocate(chosen)
            if problem:
                return errors.invalid(_PORTS.index(at).child("nodePort"), chosen, problem)
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

"""Which node ports a Service has: one for each of its ports, and one more for health checks where it needs that."""

from collections.abc import Collection, Sequence

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.allocation.ports import FULL, NodePorts
from mockube.apiserver.kinds.core.service.strategy import (
    LOAD_BALANCER,
    needs_health_check_node_port,
    needs_node_port,
    node_ports,
)

_PORTS = ROOT.child("spec", "ports")


def held_node_ports(spec: Tree) -> frozenset[int]:
    """What a Service has been given."""
    held = node_ports(spec) if needs_node_port(spec) else frozenset()
    health = spec.get("healthCheckNodePort", 0) if needs_health_check_node_port(spec) else 0
    return held | {health} if health else held


def settle_node_ports(
    spec: Tree, record: NodePorts, before: Collection[int], *, is_new: bool
) -> Sequence[FieldError]:
    """Take the ports that the client chose, and any for those that it left open; or say what cannot be."""
    if needs_node_port(spec) and spec.get("ports"):
        settled = _settle_new(spec, record) if is_new else _settle_changed(spec, record, before)
        if isinstance(settled, FieldError):
            return [settled]
        spec["ports"] = [
            port | {"nodePort": node_port} if node_port else port
            for port, node_port in zip(spec["ports"], settled, strict=True)
        ]
    if needs_health_check_node_port(spec):
        _settle_health_check(spec, record, before)
    return ()


def _allocates(spec: Tree) -> bool:
    return spec["type"] != LOAD_BALANCER or bool(spec.get("allocateLoadBalancerNodePorts", True))


def _settle_new(spec: Tree, record: NodePorts) -> list[int] | FieldError:
    """Ports of one number, of several protocols, have one node port unless the client says otherwise."""
    shared: dict[int, int] = {}
    settled = []
    for at, port in enumerate(spec["ports"]):
        number, chosen = port.get("port", 0), port.get("nodePort", 0)
        if not chosen and not _allocates(spec):
            settled.append(0)
            continue
        if number not in shared:
            chosen = chosen or _chosen_later(spec["ports"], number)
        elif chosen in (0, shared[number]):
            settled.append(shared[number])
            continue
        if chosen and (problem := record.take(chosen)):
            return errors.invalid(_PORTS.index(at).child("nodePort"), chosen, problem)
        settled.append(chosen or _take_any(record))
        shared.setdefault(number, settled[-1])
    return settled


def _chosen_later(ports: Sequence[Tree], number: int) -> int:
    chosen = (port.get("nodePort", 0) for port in ports if port.get("port", 0) == number)
    return next(filter(None, chosen), 0)


def _settle_changed(spec: Tree, record: NodePorts, before: Collection[int]) -> list[int] | FieldError:
    settled: list[int] = []
    seen: set[tuple[str, int]] = set()
    for at, port in enumerate(spec["ports"]):
        chosen = port.get("nodePort", 0)
        if not chosen and not _allocates(spec):
            settled.append(0)
            continue
        if chosen and chosen not in before and chosen not in record.taken:
            problem = record.take(chosen)
            if problem:
                return errors.invalid(_PORTS.index(at).child("nodePort"), chosen, problem)
        settled.append(chosen or _take_any(record))
        one = port.get("protocol", ""), settled[-1]
        if one in seen:
            raise ApiError(f"duplicate nodePort: {{{one[0]} {one[1]}}}")
        seen.add(one)
    return settled


def _take_any(record: NodePorts) -> int:
    port = record.take_any()
    if not port:
        raise status.internal_error(f"failed to allocate a nodePort: {FULL}")
    return port


def _settle_health_check(spec: Tree, record: NodePorts, before: Collection[int]) -> None:
    chosen = spec.get("healthCheckNodePort", 0)
    if chosen:
        problem = "" if chosen in before else record.take(chosen)
        if problem:
            what = f"failed to allocate requested HealthCheck NodePort {chosen}"
            raise status.internal_error(f"{what}: {problem}")
        return
    spec["healthCheckNodePort"] = record.take_any()
    if not spec["healthCheckNodePort"]:
        raise status.internal_error(f"failed to allocate a HealthCheck NodePort 0: {FULL}")

"""The strategy of Services.

An update keeps the allocated values that the client omits. If it changes the type, fields that the new type does not
use are removed, unless the client changes them. Allocations are made in `apiserver/allocation/`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.strategy import MAIN, Strategy, StrategyContext

NODE_PORT, LOAD_BALANCER, EXTERNAL_NAME = "NodePort", "LoadBalancer", "ExternalName"


def needs_cluster_ip(spec: Mapping[str, Any]) -> bool:
    return spec.get("type") != EXTERNAL_NAME


def needs_node_port(spec: Mapping[str, Any]) -> bool:
    return spec.get("type") in (NODE_PORT, LOAD_BALANCER)


def allocates_node_ports(spec: Mapping[str, Any]) -> bool:
    """Return whether node ports are allocated, which a load balancer can disable."""
    if spec.get("type") == LOAD_BALANCER:
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return spec.get("type") == NODE_PORT


def needs_health_check_node_port(spec: Mapping[str, Any]) -> bool:
    return spec.get("type") == LOAD_BALANCER and spec.get("externalTrafficPolicy") == "Local"


def is_externally_accessible(spec: Mapping[str, Any]) -> bool:
    """Return whether a Service has traffic from outside the cluster, to which the traffic policies apply."""
    return needs_node_port(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def node_ports(spec: Tree) -> frozenset[int]:
    return frozenset(port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort"))


def _prepare_create(service: Tree, _request: StrategyContext) -> None:
    spec = service["spec"]
    # Older clients send clusterIP only.
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        service["spec"] = spec | {"clusterIPs": [spec["clusterIP"]]}


def _prepare_update(new: Tree, old: Tree, _request: StrategyContext) -> None:
    spec = dict(new["spec"])
    _keep_allocated(spec, old["spec"])
    _match_cluster_ips(spec, old["spec"])
    new["spec"] = _without_unused_fields(spec, old["spec"])
    if spec.get("type") != LOAD_BALANCER:
        new["status"] = new.get("status", {}) | {"loadBalancer": {}}


def _keep_allocated(spec: Tree, old: Tree) -> None:
    """Keep the allocated values that an update omits, as when a client sends the manifest of the create again."""
    if needs_cluster_ip(old) and needs_cluster_ip(spec):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
    if allocates_node_ports(old) and allocates_node_ports(spec):
        spec["ports"] = _with_old_node_ports(spec, old)
    if needs_health_check_node_port(old) and needs_health_check_node_port(spec):
        spec.setdefault("healthCheckNodePort", old.get("healthCheckNodePort", 0))


def _with_old_node_ports(spec: Tree, old: Tree) -> list[Tree]:
    """Return the ports with their old node ports by name, unless other ports use those now."""
    used = node_ports(old) & node_ports(spec)
    old_node_ports = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", ())}
    free = {name: port for name, port in old_node_ports.items() if port and port not in used}
    return [
        port
        if port.get("nodePort") or port.get("name", "") not in free
        else port | {"nodePort": free[port.get("name", "")]}
        for port in spec.get("ports", ())
    ]


def _match_cluster_ips(spec: Tree, old: Tree) -> None:
    """Change clusterIPs with clusterIP, or clusterIP with clusterIPs, if only one of them changed."""
    cluster_ip, cluster_ips = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    old_cluster_ip, old_cluster_ips = old.get("clusterIP", ""), old.get("clusterIPs", [])
    if old_cluster_ips and not cluster_ips and cluster_ip == old_cluster_ip:
        spec["clusterIPs"] = old_cluster_ips
    elif cluster_ip != old_cluster_ip and cluster_ips == old_cluster_ips:
        spec["clusterIPs"] = [cluster_ip]
        if old_cluster_ip and not cluster_ip:
            del spec["clusterIPs"]


def _without_unused_fields(spec: Tree, old: Tree) -> Tree:
    """Return the spec without the fields that the new type does not use and the client did not change."""
    removed_fields: set[str] = set()
    if needs_cluster_ip(old) and not needs_cluster_ip(spec):
        if _has_same_fields(spec, old, "clusterIP", "clusterIPs"):
            removed_fields |= {"clusterIP", "clusterIPs"}
        removed_fields |= {
            field for field in ("ipFamilies", "ipFamilyPolicy") if _has_same_fields(spec, old, field)
        }
    for field, needs in _NEEDED_BY.items():
        if needs(old) and not needs(spec) and _has_same_fields(spec, old, field):
            removed_fields.add(field)
    new_spec = {field: value for field, value in spec.items() if field not in removed_fields}
    if needs_node_port(old) and not needs_node_port(spec) and node_ports(spec) <= node_ports(old):
        new_spec["ports"] = [
            {field: value for field, value in port.items() if field != "nodePort"}
            for port in spec.get("ports", ())
        ]
        if not new_spec["ports"]:
            del new_spec["ports"]
    return new_spec


def _is_load_balancer(spec: Tree) -> bool:
    return spec.get("type") == LOAD_BALANCER


_NEEDED_BY: Mapping[str, Callable[[Tree], bool]] = {
    "healthCheckNodePort": needs_health_check_node_port,
    "allocateLoadBalancerNodePorts": _is_load_balancer,
    "loadBalancerClass": _is_load_balancer,
    "externalTrafficPolicy": is_externally_accessible,
}


def _has_same_fields(spec: Tree, old: Tree, *fields: str) -> bool:
    return all(spec.get(field) == old.get(field) for field in fields)


def _drop_internal_policy(service: Tree) -> None:
    """Remove internalTrafficPolicy from an ExternalName Service, as upstream does when it reads one."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName" and "internalTrafficPolicy" in spec:
        service["spec"] = {name: value for name, value in spec.items() if name != "internalTrafficPolicy"}


STRATEGY = Strategy(
    canonicalize=_drop_internal_policy,
    create_on_update=True,
    prepare_create=_prepare_create,
    prepare_update={MAIN: _prepare_update},
    returns_deleted=True,
)

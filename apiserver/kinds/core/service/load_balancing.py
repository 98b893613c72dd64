"""Validation of a Service's external traffic: sources, nodes and load balancer."""

from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import addresses, checks
from mockube.apiserver.kinds.common.objectmeta import METADATA, check_label_name

from .strategy import LOAD_BALANCER, is_externally_accessible, needs_health_check_node_port

_SPEC: Final = ROOT.child("spec")
_ONLY_LOAD_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"
_POLICY: Final = checks.one_of("Cluster", "Local")


# --- sources


def check_external_ips(spec: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    valid_old_ips = {*(old or {}).get("externalIPs", ())}
    for index, address in enumerate(spec.get("externalIPs", ())):
        item_path = _SPEC.child("externalIPs").index(index)
        yield from [*addresses.check_ip(address, item_path, valid_old_ips)] or addresses.check_endpoint_ip(
            address, item_path
        )


_RANGES_ANNOTATION: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def check_source_ranges(service: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    """Check the field, whose path in upstream's errors has its Go name, or the older annotation."""
    spec = service.get("spec") or {}
    ranges = spec.get("loadBalancerSourceRanges")
    text = meta.annotations(service).get(_RANGES_ANNOTATION)
    if not ranges and text is None:
        return
    path = _SPEC.child("LoadBalancerSourceRanges")
    if not ranges:
        path = METADATA.child("annotations").key(_RANGES_ANNOTATION)
    if spec.get("type") != LOAD_BALANCER:
        yield errors.forbidden(path, _ONLY_LOAD_BALANCERS)
    if ranges:
        old_ranges = ((old or {}).get("spec") or {}).get("loadBalancerSourceRanges", ())
        valid_old_cidrs = {cidr.strip() for cidr in old_ranges}
        for index, cidr in enumerate(ranges):
            yield from addresses.check_cidr(cidr.strip(), path.index(index), valid_old_cidrs)
    elif text and (old is None or meta.annotations(old).get(_RANGES_ANNOTATION) != text):
        for cidr in text.split(",") if text.strip() else ():
            yield from addresses.check_cidr(cidr.strip(), path)


# --- load balancers


def check_load_balancer_ports(spec: ReadOnlyTree) -> Iterator[FieldError]:
    flag, is_load_balancer = spec.get("allocateLoadBalancerNodePorts"), spec.get("type") == LOAD_BALANCER
    if flag is not None and not is_load_balancer:
        yield errors.forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _ONLY_LOAD_BALANCERS)
    if flag is None and is_load_balancer:
        yield errors.required(ROOT.child("allocateLoadBalancerNodePorts"))


def check_load_balancer_class(spec: ReadOnlyTree) -> Iterable[FieldError]:
    class_name, path = spec.get("loadBalancerClass"), _SPEC.child("loadBalancerClass")
    if class_name is None:
        return ()
    if spec.get("type") != LOAD_BALANCER:
        return (errors.forbidden(path, _ONLY_LOAD_BALANCERS),)
    return check_label_name(class_name, path)


def check_class_change(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    stays = new.get("type") == LOAD_BALANCER == old.get("type")
    class_name = new.get("loadBalancerClass")
    if stays and class_name != old.get("loadBalancerClass"):
        yield errors.invalid(_SPEC.child("loadBalancerClass"), class_name, "may not change once set")
    yield from check_load_balancer_class(new)


# --- policies


def check_external_policy(spec: ReadOnlyTree) -> Iterator[FieldError]:
    policy, path = spec.get("externalTrafficPolicy", ""), _SPEC.child("externalTrafficPolicy")
    if not is_externally_accessible(spec):
        if policy:
            yield errors.invalid(path, policy, "may only be set for externally-accessible services")
    elif not policy:
        yield errors.required(path)
    else:
        yield from _POLICY(policy, path)
    yield from _check_health_port(spec, _SPEC.child("healthCheckNodePort"))


def _check_health_port(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    port = spec.get("healthCheckNodePort", 0)
    if needs_health_check_node_port(spec):
        return checks.port_number(port, path) if port else (errors.required(path),)
    problem = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return (errors.invalid(path, port, problem),) if port else ()


def check_health_port_change(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    if not (needs_health_check_node_port(new) and needs_health_check_node_port(old)):
        return
    if new.get("healthCheckNodePort", 0) != old.get("healthCheckNodePort", 0):
        yield errors.forbidden(_SPEC.child("healthCheckNodePort"), "field is immutable")


_WITH_CLUSTER_IP: Final = ("ClusterIP", "NodePort", LOAD_BALANCER)
_DISTRIBUTION: Final = checks.pointer(
    "trafficDistribution", checks.one_of("PreferClose", "PreferSameZone", "PreferSameNode")
)


def check_internal_policy(spec: ReadOnlyTree) -> Iterator[FieldError]:
    if spec.get("internalTrafficPolicy") is None and spec.get("type") in _WITH_CLUSTER_IP:
        yield errors.required(_SPEC.child("internalTrafficPolicy"))
    yield from checks.pointer("internalTrafficPolicy", _POLICY)(spec, _SPEC)
    yield from _DISTRIBUTION(spec, _SPEC)


# --- status


def check_load_balancer_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check the load balancer status of a Service."""
    path = ROOT.child("status", "loadBalancer", "ingress")
    new_ingress, old_ingress = (
        ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress", ()) for service in (new, old)
    )
    if new_ingress and (new.get("spec") or {}).get("type") != LOAD_BALANCER:
        yield errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    valid_old_ips = {ingress.get("ip") for ingress in old_ingress}
    for index, ingress in enumerate(new_ingress):
        ingress_path = path.index(index)
        if ingress.get("ip"):
            yield from addresses.check_ip(ingress["ip"], ingress_path.child("ip"), valid_old_ips)
        yield from _check_mode(ingress, ingress_path.child("ipMode"))
        yield from _check_hostname(ingress.get("hostname", ""), ingress_path.child("hostname"))


def _check_mode(ingress: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    mode, address = ingress.get("ipMode"), ingress.get("ip")
    if mode is None:
        return (errors.required(path, "must be specified when `ip` is set"),) if address else ()
    if not address:
        return (errors.forbidden(path, "may not be specified when `ip` is not set"),)
    return checks.one_of("Proxy", "VIP")(mode, path)


def _check_hostname(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        return
    yield from checks.report(names.check_dns1123_subdomain)(name, path)
    if addresses.parse_sloppily(name) is not None:
        yield errors.invalid(path, name, "must be a DNS name, not an IP address")

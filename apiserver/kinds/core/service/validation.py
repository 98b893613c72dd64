"""Validation of Services."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks, objectmeta
from mockube.apiserver.kinds.common.addresses import check_port, check_protocol
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import Validation

from . import cluster_ips, load_balancing
from .strategy import LOAD_BALANCER, NODE_PORT

_SPEC: Final = ROOT.child("spec")
_PORTS: Final = _SPEC.child("ports")
_CLUSTER_IP: Final = "ClusterIP"


# --- annotations

_MODE, _HINTS = "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"


def _check_topology(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    """Check that the annotation and its deprecated name have the same value."""
    mode, hints = annotations.get(_MODE), annotations.get(_HINTS)
    if mode is not None and hints is not None and mode != hints:
        problem = f"must match annotations[{_HINTS}] when both are specified"
        yield errors.invalid(objectmeta.METADATA.child("annotations").key(_MODE), mode, problem)


# --- types

_NOT_EXTERNAL: Final = checks.refuse_any("may not be set for ExternalName services")


def _check_external_name(spec: ReadOnlyTree) -> Iterator[FieldError]:
    for name in ("clusterIPs", "ipFamilies"):
        if spec.get(name):
            yield from _NOT_EXTERNAL(spec[name], _SPEC.child(name))
    yield from checks.pointer("ipFamilyPolicy", _NOT_EXTERNAL)(spec, _SPEC)
    target = spec.get("externalName", "").removesuffix(".")
    path = _SPEC.child("externalName")
    yield from (
        checks.report(names.check_dns1123_subdomain)(target, path) if target else (errors.required(path),)
    )


def _check_type_fields(spec: ReadOnlyTree) -> Iterator[FieldError]:
    service_type = spec.get("type")
    if (
        not spec.get("ports")
        and not cluster_ips.is_headless(spec)
        and service_type != cluster_ips.EXTERNAL_NAME
    ):
        yield errors.required(_PORTS)
    if service_type in (LOAD_BALANCER, NODE_PORT) and cluster_ips.is_headless(spec):
        problem = f"may not be set to 'None' for {service_type} services"
        yield errors.invalid(_SPEC.child("clusterIPs").index(0), cluster_ips.NO_ADDRESS, problem)
    if service_type == cluster_ips.EXTERNAL_NAME:
        yield from _check_external_name(spec)


_TYPE: Final = checks.require(
    "type", checks.one_of(_CLUSTER_IP, cluster_ips.EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)
)


# --- ports

_CHECK_PORT: Final = checks.all_of(
    checks.field("port", checks.port_number, absent=0),
    checks.require("protocol", check_protocol),
    checks.field("targetPort", check_port, absent=0),
    checks.pointer("appProtocol", objectmeta.check_label_name),
)


def _check_ports(ports: Sequence[ReadOnlyTree]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name, port_path = port.get("name", ""), _PORTS.index(index)
        if name:
            yield from checks.report(names.check_dns1123_label)(name, port_path.child("name"))
            if name in seen:
                yield errors.duplicate(port_path.child("name"), name)
            seen.add(name)
        elif len(ports) > 1:
            yield errors.required(port_path.child("name"))
        yield from _CHECK_PORT(port, port_path)


def _check_ports_differ(spec: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that no port and no node port is repeated for a protocol."""
    ports = spec.get("ports") or ()
    if spec.get("type") == _CLUSTER_IP:
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                yield errors.forbidden(_PORTS.index(index).child("nodePort"), detail)
    seen_node_ports: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = port.get("protocol"), port.get("nodePort", 0)
        if key[1] and key in seen_node_ports:
            yield errors.duplicate(_PORTS.index(index).child("nodePort"), key[1])
        seen_node_ports.add(key)
    seen_ports: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = port.get("protocol", ""), port.get("port", 0)
        if key in seen_ports:
            value = internal("core.ServicePort", {"protocol": key[0], "port": key[1]})
            yield errors.duplicate(_PORTS.index(index), value)
        seen_ports.add(key)


# --- affinity

_CLIENT_IP, _NO_AFFINITY = "ClientIP", "None"
_MAX_AFFINITY_SECONDS: Final = 86400


def _check_affinity(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    yield from checks.require("sessionAffinity", checks.one_of(_CLIENT_IP, _NO_AFFINITY))(spec, path)
    path = path.child("sessionAffinityConfig")
    if affinity == _CLIENT_IP:
        yield from _check_client_ip(config, path)
    elif affinity == _NO_AFFINITY and config is not None:
        yield errors.forbidden(path, f"must not be set when session affinity is {_NO_AFFINITY}")


def _check_client_ip(config: ReadOnlyTree | None, path: Path) -> Iterable[FieldError]:
    """Check the required timeout. The path of the error ends with the first missing field."""
    value: Any = config
    for step in ("clientIP", "timeoutSeconds"):
        if value is None:
            break
        value, path = value.get(step), path.child(step)
    if value is None:
        return (errors.required(path, f"when session affinity type is {_CLIENT_IP}"),)
    if 0 < value <= _MAX_AFFINITY_SECONDS:
        return ()
    problem = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
    return (errors.invalid(path, value, problem),)


# --- Services


def _check_service(service: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    """Check a Service except for its name, in upstream's order."""
    spec, old_spec = service.get("spec") or {}, None if old is None else old.get("spec") or {}
    yield from _check_topology(meta.annotations(service))
    yield from _check_type_fields(spec)
    yield from _check_ports(spec.get("ports") or ())
    yield from checks.field("selector", objectmeta.check_labels)(spec, _SPEC)
    yield from _check_affinity(spec, _SPEC)
    yield from cluster_ips.check_cluster_ips(spec, old_spec)
    yield from load_balancing.check_external_ips(spec, old_spec)
    yield from _TYPE(spec, _SPEC)
    yield from _check_ports_differ(spec)
    yield from load_balancing.check_source_ranges(service, old)
    yield from load_balancing.check_load_balancer_ports(spec)
    yield from load_balancing.check_load_balancer_class(spec)
    yield from load_balancing.check_external_policy(spec)
    yield from load_balancing.check_internal_policy(spec)


def _create(service: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_service(service, None)


def _update(new_service: ReadOnlyTree, old_service: ReadOnlyTree) -> Iterator[FieldError]:
    new, old = new_service.get("spec") or {}, old_service.get("spec") or {}
    yield from cluster_ips.check_address_changes(new, old)
    yield from cluster_ips.check_family_changes(new, old)
    yield from load_balancing.check_class_change(new, old)
    yield from load_balancing.check_health_port_change(new, old)
    yield from _check_service(new_service, old_service)


VALIDATION: Final = Validation(
    name=objectmeta.LABEL,
    create=_create,
    update=_update,
    subresources={"status": load_balancing.check_load_balancer_status},
)

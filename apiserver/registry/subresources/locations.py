"""Find the target of a proxied subresource: a kubelet, a pod, or a pod of a service. No connection is made here.

Also the query of a request for `pods/log` to a kubelet.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import errors, ip_addresses, meta, randomness, status, timestamps
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.groups import NODES, PODS, SERVICES, GroupKind, GroupResource
from mockube.apimachinery.hosts import join_host_port, url_host
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError, BadRequest
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOPPED_UNITS
from mockube.apiserver.outgoing import PREFERRED_ADDRESSES
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import RequestContext

from .service_endpoints import EndpointAddress, addresses_of_slices, addresses_of_subsets, slices_of_service

KUBELET_PORT: Final = 10250
SIMULATED: Final = ("kwok.x-k8s.io/node", "fake")
"""kwok's annotation of simulated nodes."""
_SYSTEM: Final = "kube-system"
_KUBELETS: Final = "mockube-kubelets"
"""The ConfigMap in which the controller manager publishes the addresses of simulated kubelets."""
_ENDPOINTS = GroupResource("", "endpoints")
_CONFIG_MAPS: Final = GroupResource("", "configmaps")
_STOPPED_KUBELET: Final = re.compile(r"(?:^|[\s,])kubelet(?:=(?!cut-off)|,|$)")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


class KubeletGateway(Struct, frozen=True, kw_only=True):
    """The listener of simulated kubelets, which serves their nodes and pods."""

    host: str
    port: int
    certificate: str
    """The serving certificate."""
    node: str
    """The name of the requested node."""
    refusing: str = ""
    """The address of the kubelet of the node if it does not run, so that its port refuses connections."""


class Location(Struct, frozen=True, kw_only=True):
    scheme: str
    host: str
    port: str
    """The port as it was requested; "" for the default of the scheme."""
    path: str = ""
    query: str = ""
    is_kubelet: bool = False
    """Whether the client certificate for kubelets is used, and the serving certificate is verified as a kubelet's."""
    skips_verification: bool = False
    is_global: bool = False
    """Whether the host must not resolve to a loopback or link-local address."""
    gateway: KubeletGateway | None = None
    is_process: bool = False
    """Whether only a real process, not a simulated container, may handle the request."""

    @property
    def authority(self) -> str:
        return join_host_port(self.host, self.port) if self.port else url_host(self.host)


class NodeAddress(Struct, frozen=True, kw_only=True):
    host: str
    port: str
    gateway: KubeletGateway | None


class Locator:
    """Finds locations by the current objects, as upstream does."""

    def __init__(
        self,
        backend: Backend,
        preferred_addresses: Sequence[str] = PREFERRED_ADDRESSES,
        family: str = "IPv4",
    ) -> None:
        """`family` is the IP family of Services that do not choose one."""
        self._backend = backend
        self._family = family
        self._preferred = preferred_addresses

    async def kubelet(
        self, context: RequestContext, path: str, query: Mapping[str, str] | Sequence[tuple[str, str]]
    ) -> Location | None:
        """Return the location of a container at the kubelet of its pod; None for a pod without a node."""
        pod = await self._read(context, PODS, context.namespace, context.name)
        kubelet_path = f"/{path}/{meta.namespace(pod)}/{meta.name(pod)}"
        if path != "portForward":
            kubelet_path += f"/{_container(pod, context.parameter('container'))}"
        name = pod["spec"].get("nodeName")
        if not name:
            return None
        node = await self._node(context, name)
        return Location(
            scheme="https",
            host=node.host,
            port=node.port,
            path=kubelet_path,
            query=urlencode(query),
            is_kubelet=True,
            gateway=node.gateway,
        )

    async def node(self, context: RequestContext) -> Location:
        scheme, name, port = _split_name(context, "node")
        node = await self._node(context, name)
        is_kubelet = port in ("", node.port)
        return Location(
            scheme="https" if is_kubelet else scheme,
            host=node.host,
            port=port or node.port,
            is_kubelet=is_kubelet,
            is_global=True,
            gateway=node.gateway,
        )

    async def pod(self, context: RequestContext) -> Location:
        scheme, name, port = _split_name(context, "pod")
        pod = await self._read(context, PODS, context.namespace, name)
        address = _pod_address(pod)
        check_address(address)
        port = port or _first_port(pod)
        return Location(scheme=scheme, host=address, port=port, gateway=await self._gateway_of_pod(pod))

    async def service(self, context: RequestContext) -> Location:
        """Return the location of a random ready pod of a service's port."""
        scheme, name, port = _split_name(context, "service")
        if int_or_none(port) is not None:
            port = await self._port_name(context, name, int_or_none(port) or 0)
        for address in await self._addresses(context, name, port):
            pod = await self._pod_behind(context, address)
            if pod is not None:
                gateway = await self._gateway_of_pod(pod)
                return Location(scheme=scheme, host=address.ip, port=str(address.port), gateway=gateway)
        subject = context.name if self._backend.is_before("1.37") else name
        raise _unavailable(f'no endpoints available for service "{subject}"')

    async def _addresses(self, context: RequestContext, name: str, port: str) -> Iterator[EndpointAddress]:
        """Return the addresses of a service's port; raise an error if the service has none at all."""
        if self._backend.is_before("1.37"):
            endpoints = await self._read(context, _ENDPOINTS, context.namespace, name)
            if subsets := endpoints.get("subsets") or ():
                return addresses_of_subsets(subsets, port, self._rotate)
        else:
            await self._backend.watch_cache.fresh()
            if slices := [*slices_of_service(self._backend, context.namespace, name)]:
                return addresses_of_slices(slices, port, self._family, self._rotate)
        raise _unavailable(f'no endpoints available for service "{name}"')

    def _rotate(self, items: Sequence[Any]) -> Sequence[Any]:
        if len(items) < 2:
            return items
        first = int(randomness.fraction(self._backend.random) * len(items)) % len(items)
        return [*items[first:], *items[:first]]

    async def _port_name(self, context: RequestContext, name: str, number: int) -> str:
        service = await self._read(context, SERVICES, context.namespace, name)
        for port in service["spec"].get("ports") or ():
            if port["port"] == number:
                return port.get("name") or ""
        raise _unavailable(f'no service port {number} found for service "{name}"')

    async def _pod_behind(self, context: RequestContext, address: EndpointAddress) -> ReadOnlyTree | None:
        """Return the pod of an endpoint address if it is in the same namespace and still has the address; else None."""
        reference = address.target
        if reference.get("namespace") != context.namespace:
            return None
        stored = await self._backend.find(
            self._backend.rows[PODS], context.namespace, reference.get("name") or ""
        )
        pod = None if stored is None else stored.tree()
        addresses = (
            []
            if pod is None
            else [entry.get("ip") for entry in (pod.get("status") or {}).get("podIPs") or ()]
        )
        return pod if address.ip in addresses else None

    # --- nodes

    async def _node(self, context: RequestContext, name: str) -> NodeAddress:
        node = await self._read(context, NODES, "", name)
        node_status = node.get("status") or {}
        addresses = node_status.get("addresses") or []
        hosts = [
            address["address"] for kind in self._preferred for address in addresses if address["type"] == kind
        ]
        if not hosts:
            addresses_text = " ".join(f"{{{address['type']} {address['address']}}}" for address in addresses)
            raise ApiError(f"no preferred addresses found; known addresses: [{addresses_text}]")
        endpoint = (node_status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        port = str(endpoint.get("Port") or KUBELET_PORT)
        return NodeAddress(host=hosts[0], port=port, gateway=gateway_of(self._backend, node))

    async def _gateway_of_pod(self, pod: ReadOnlyTree) -> KubeletGateway | None:
        name = pod["spec"].get("nodeName") or ""
        node = await self._backend.find(self._backend.rows[NODES], "", name) if name else None
        return None if node is None else gateway_of(self._backend, node.tree())

    async def _read(
        self, context: RequestContext, resource: GroupResource, namespace: str, name: str
    ) -> ReadOnlyTree:
        """Return an object; as upstream, the error of a missing one has the requested resource."""
        stored = await self._backend.find(self._backend.rows[resource], namespace, name)
        if stored is None:
            raise status.not_found(context.resource.group_resource, name)
        return stored.tree()


def gateway_of(backend: Backend, node: ReadOnlyTree) -> KubeletGateway | None:
    """Return the listener of a simulated node; None if the node is not simulated or has no listener."""
    key, value = SIMULATED
    annotations = meta.annotations(node)
    found = gateway(backend, meta.name(node)) if annotations.get(key) == value else None
    if found is None or _STOPPED_KUBELET.search(annotations.get(STOPPED_UNITS, "")) is None:
        return found
    addresses = (node.get("status") or {}).get("addresses") or ()
    address = next((each["address"] for each in addresses if each["type"] == "InternalIP"), meta.name(node))
    return replace(found, refusing=join_host_port(address, KUBELET_PORT))


def gateway(backend: Backend, node: str = "") -> KubeletGateway | None:
    """Return the listener of the simulated nodes, for requests to one of them or to all; None if there is none."""
    config_map = backend.find_cached(_CONFIG_MAPS, _SYSTEM, _KUBELETS)
    data = {} if config_map is None else config_map.tree().get("data") or {}
    address = data.get("address") or ""
    host, _, port = backend.local_ports.get(address, address).rpartition(":")
    if not host or not port.isascii() or not port.isdecimal():
        return None
    return KubeletGateway(
        host=host.strip("[]"),
        port=backend.moved_ports.get(number := int(port[:6]), number),
        certificate=data.get("certificate") or "",
        node=node,
    )


def _split_name(context: RequestContext, kind: str) -> tuple[str, str, str]:
    """Return the scheme, the name and the port of `name`, `name:port` or `scheme:name:port`."""
    match context.name.split(":"):
        case [name]:
            parts = "", name, ""
        case [name, port]:
            parts = "", name, port
        case [("http" | "https" | "") as scheme, name, port]:
            parts = scheme, name, port
        case _:
            raise BadRequest(f'invalid {kind} request "{context.name}"')
    if not parts[1]:
        raise BadRequest(f'invalid {kind} request "{context.name}"')
    return parts[0] or "http", parts[1], parts[2]


def _pod_address(pod: ReadOnlyTree) -> str:
    pod_ips = (pod.get("status") or {}).get("podIPs") or ()
    return str(next((entry["ip"] for entry in pod_ips if entry.get("ip")), ""))


def _first_port(pod: ReadOnlyTree) -> str:
    ports = (container["ports"][0] for container in pod["spec"]["containers"] if container.get("ports"))
    return str(next((port["containerPort"] for port in ports), ""))


def check_address(host: str) -> None:
    """Refuse an address of the server's own machine or network, so that the proxy does not reach it."""
    address = ip_addresses.parse(host)
    if address is None or not ip_addresses.is_global_unicast(address):
        raise BadRequest("address not allowed")


def _unavailable(message: str) -> ApiError:
    return status.ServiceUnavailable(message)


def _container(pod: ReadOnlyTree, name: str) -> str:
    names = list(_container_names(pod))
    if name:
        if name not in names:
            raise BadRequest(f"container {name} is not valid for pod {meta.name(pod)}")
        return name
    main_containers = pod["spec"]["containers"]
    if len(main_containers) != 1:
        raise BadRequest(
            f"a container name must be specified for pod {meta.name(pod)}, choose one of: [{' '.join(names)}]"
        )
    return str(main_containers[0]["name"])


def _container_names(pod: ReadOnlyTree) -> Iterator[str]:
    for field in _CONTAINERS:
        for container in pod["spec"].get(field) or ():
            yield container["name"]


# --- options of pods/log

_LOG_OPTIONS = GroupKind("", "PodLogOptions")
_LOG_NUMBERS = ("sinceSeconds", "tailLines", "limitBytes")


def log_query(context: RequestContext) -> list[tuple[str, str]]:
    """Return the query of a kubelet's log endpoint, in upstream's order."""
    numbers = {name: context.number(name) for name in _LOG_NUMBERS}
    since = _since_time(context)
    _check_log_options(context, numbers, since)
    chosen = {name: "true" for name in ("follow", "previous", "timestamps") if context.flag(name)}
    chosen |= {name: str(value) for name, value in numbers.items() if value is not None}
    if since is not None:
        chosen["sinceTime"] = since
    return sorted(chosen.items())


def _since_time(context: RequestContext) -> str | None:
    text = context.parameter("sinceTime")
    if text in ("", "null"):
        return None
    try:
        time = timestamps.parse_time(text)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    return timestamps.format_time(time)


def _check_log_options(context: RequestContext, numbers: dict[str, int | None], since: str | None) -> None:
    field_errors = []
    for name, minimum in (("tailLines", 0), ("limitBytes", 1)):
        value = numbers[name]
        if value is not None and value < minimum:
            problem = "must be greater than 0" if minimum else "must be greater than or equal to 0"
            field_errors.append(errors.invalid(ROOT.child(name), value, problem))
    seconds = numbers["sinceSeconds"]
    if seconds is not None and since is not None:
        problem = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        field_errors.append(errors.forbidden(ROOT.child("[]"), problem))
    elif seconds is not None and seconds < 1:
        field_errors.append(errors.invalid(ROOT.child("sinceSeconds"), seconds, "must be greater than 0"))
    if context.parameter("stream"):
        field_errors.append(errors.forbidden(ROOT.child("stream"), "may not be specified"))
    if field_errors:
        raise status.invalid(_LOG_OPTIONS, context.name, field_errors)

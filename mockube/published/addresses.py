"""The URLs of Services, Ingresses and Gateways on this machine, from their objects. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.failure import Failure, Missing, UsageError
from mockube.publisher.bindings import (
    ADDRESS,
    HTTP,
    HTTPS,
    LOAD_BALANCERS,
    NONE,
    Endpoint,
    PublishedPort,
    endpoint_of,
    problem_of_balancer,
    problem_of_client,
    published_ports,
)

SERVICE, INGRESS, GATEWAY = "svc", "ingress", "gateway"
_KINDS: Final = {
    **dict.fromkeys(("svc", "service", "services"), SERVICE),
    **dict.fromkeys(("ing", "ingress", "ingresses"), INGRESS),
    **dict.fromkeys(("gw", "gateway", "gateways"), GATEWAY),
}
_NAME: Final = re.compile(r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?")
_PATTERN: Final = re.compile(r"[][(){}*+.?|^$\\]")
"""What a path that is a pattern has."""
_CLIENT: Final = "127.0.0.1"
"""The address of clients on this machine."""
_HTTPS_PORTS: Final = (443, 8443)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class PublishedUrl(Struct, frozen=True, kw_only=True):
    """A URL, or why there is none."""

    kind: str
    namespace: str
    object_name: str
    port: str
    """The port of the object, and its name."""
    url: str
    note: str = ""
    warning: str = ""
    """Why nothing answers at the URL."""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.object_name}"


class Published(Struct, frozen=True, kw_only=True):
    """Where a cluster publishes, by the ConfigMap that its manager writes."""

    record: Mapping[str, str]

    def ports_of(self, service: ReadOnlyTree) -> Sequence[PublishedPort]:
        return published_ports(
            service, address=self.record[ADDRESS], balancers=self.record.get(LOAD_BALANCERS, "")
        )

    def problem_of_balancer(self, service: ReadOnlyTree) -> str:
        return problem_of_balancer(service, self.record[ADDRESS], self.record.get(LOAD_BALANCERS, ""))

    def endpoint(self, port: PublishedPort) -> Endpoint | str:
        """Return where a port is published, or why it is not."""
        value = self.record.get(port.key, "")
        return value.removeprefix(NONE) if value.startswith(NONE) else endpoint_of(port, self.record)

    def http(self, *, uses_tls: bool) -> Endpoint | None:
        """Return where Ingresses and Gateways are served; None while there are none."""
        value = self.record.get(HTTPS if uses_tls else HTTP, "")
        return None if not value or value.startswith(NONE) else Endpoint.parse(value)


def parse_object(text: str) -> tuple[str, str]:
    """Read `svc/web`; a name alone is one of a Service."""
    kind, slash, name = text.rpartition("/")
    kind = _KINDS.get(kind, "") if slash else SERVICE
    if not kind or not _NAME.fullmatch(name):
        raise UsageError(f'"{text}" is none of svc/NAME, ingress/NAME and gateway/NAME')
    return kind, name


def service_urls(
    service: ReadOnlyTree, published: Published, *, uses_tls: bool = False
) -> Iterator[PublishedUrl]:
    """Yield the URL of each port of a Service: by its load balancer if it has one, or else by its node port."""
    ports = published.ports_of(service)
    balanced = {port.port for port in ports if not port.node_port}
    declared = {port["port"]: port for port in service["spec"].get("ports") or ()}
    for port in ports:
        if port.node_port and port.port in balanced:
            continue
        found = published.endpoint(port)
        is_found = isinstance(found, Endpoint)
        is_secure = uses_tls or _speaks_https(declared[port.port])
        yield PublishedUrl(
            kind=SERVICE,
            namespace=port.namespace,
            object_name=port.service,
            port=f"{port.name}/{port.port}" if port.name else str(port.port),
            url=url_of(found, uses_tls=is_secure) if isinstance(found, Endpoint) else "",
            note="" if is_found else str(found),
            warning=published.problem_of_balancer(service)
            if port.node_port
            else problem_of_client(service, _CLIENT),
        )


def _speaks_https(port: ReadOnlyTree) -> bool:
    protocol = (port.get("appProtocol") or "").rpartition("/")[2]
    name = port.get("name") or ""
    return protocol == "https" or name.startswith("https") or (port["port"] in _HTTPS_PORTS and not protocol)


def url_of(endpoint: Endpoint, *, uses_tls: bool, host: str = "", path: str = "") -> str:
    scheme = "https" if uses_tls else "http"
    address = host or (f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address)
    port = "" if endpoint.port == _DEFAULT_PORTS[scheme] else f":{endpoint.port}"
    return f"{scheme}://{address}{port}{path}"


def service_problem(service: ReadOnlyTree) -> Failure | None:
    """Return why a Service cannot be reached from this machine at all; None if it can."""
    spec, name = service["spec"], meta.name(service)
    namespace = f" -n {meta.namespace(service)}" if meta.namespace(service) != "default" else ""
    service_type = spec.get("type") or "ClusterIP"
    if service_type == "ExternalName":
        return Failure(
            f'service "{name}" is an alias of {spec.get("externalName")}, which is outside of the cluster'
        )
    if service_type == "ClusterIP":
        port = next((port["port"] for port in spec.get("ports") or ()), 80)
        return Failure(
            f'service "{name}" has the type ClusterIP, which only pods reach: run '
            f"`kubectl{namespace} port-forward svc/{name} {8000 + port if port < 1024 else port}:{port}`, or change it with "
            f"""`kubectl{namespace} patch svc {name} -p '{{"spec":{{"type":"NodePort"}}}}'`"""
        )
    ports = spec.get("ports") or ()
    if ports and all((port.get("protocol") or "TCP") != "TCP" for port in ports):
        return Failure(f'service "{name}" has no TCP port: mockube publishes no others')
    return None


def ingress_urls(
    ingress: ReadOnlyTree, published: Published, *, uses_tls: bool = False
) -> Iterator[PublishedUrl]:
    """Yield the URL of each host of an Ingress, with its first path."""
    spec = ingress.get("spec") or {}
    secure_hosts = {host for entry in spec.get("tls") or () for host in entry.get("hosts") or ()}
    if not ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        yield _unserved(INGRESS, ingress)
        return
    seen = set[str]()
    rules: Sequence[ReadOnlyTree] = spec.get("rules") or ({},)
    for rule in rules:
        host = rule.get("host") or ""
        if host not in seen:
            seen.add(host)
            first: ReadOnlyTree = next(iter((rule.get("http") or {}).get("paths") or ()), {})
            is_secure = uses_tls or host in secure_hosts
            yield _http_url(INGRESS, ingress, published, Place(host, _path_of(first), uses_tls=is_secure))


def gateway_urls(
    gateway: ReadOnlyTree, published: Published, *, uses_tls: bool = False
) -> Iterator[PublishedUrl]:
    """Yield the URL of each listener of a Gateway."""
    if not (gateway.get("status") or {}).get("addresses"):
        yield _unserved(GATEWAY, gateway)
        return
    unserved = _unserved_listeners(gateway)
    for listener in (gateway.get("spec") or {}).get("listeners") or ():
        if problem := unserved.get(listener["name"]):
            yield msgspec.structs.replace(
                _unserved(GATEWAY, gateway), port=str(listener["port"]), note=f"{listener['name']}: {problem}"
            )
            continue
        is_secure = listener.get("protocol") == "HTTPS"
        if is_secure or (listener.get("protocol") == "HTTP" and not uses_tls):
            place = Place(listener.get("hostname") or "", "", uses_tls=is_secure)
            yield _http_url(GATEWAY, gateway, published, place)


def _unserved_listeners(gateway: ReadOnlyTree) -> Mapping[str, str]:
    """Return why listeners are not served, by their names."""
    return {
        status["name"]: condition.get("message") or condition.get("reason") or ""
        for status in gateway["status"].get("listeners") or ()
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Programmed" and condition.get("status") == "False"
    }


def _path_of(rule: ReadOnlyTree) -> str:
    """Return the path of a rule: of one that may be a pattern, the part before what a pattern begins with."""
    path: str = rule.get("path") or ""
    if rule.get("pathType") not in {"Exact", "Prefix"}:
        path = _PATTERN.split(path, maxsplit=1)[0]
    return "" if path == "/" else path


class Place(NamedTuple):
    """Where requests for an Ingress or a Gateway go."""

    host: str
    path: str
    uses_tls: bool


def _unserved(kind: str, tree: ReadOnlyTree) -> PublishedUrl:
    return PublishedUrl(
        kind=kind,
        namespace=meta.namespace(tree),
        object_name=meta.name(tree),
        port="",
        url="",
        note="no controller that mockube knows serves its class",
    )


def _http_url(kind: str, tree: ReadOnlyTree, published: Published, place: Place) -> PublishedUrl:
    endpoint = published.http(uses_tls=place.uses_tls)
    if endpoint is None:
        return msgspec.structs.replace(_unserved(kind, tree), note="its port is not open")
    name, note = place.host.replace("*", "any"), ""
    url = url_of(endpoint, uses_tls=place.uses_tls, host=name, path=place.path)
    if name and name != "localhost" and not name.endswith(".localhost"):
        note = f"curl --resolve {name}:{endpoint.port}:{endpoint.address} {url}"
    return msgspec.structs.replace(_unserved(kind, tree), port=str(endpoint.port), url=url, note=note)


def select_port(urls: Sequence[PublishedUrl], port: str, service: str) -> Sequence[PublishedUrl]:
    if not port:
        return urls
    found = [each for each in urls if port in each.port.split("/")]
    if not found:
        ports = ", ".join(each.port for each in urls)
        raise Missing(f'service "{service}" has no port {port}: {ports}')
    return found

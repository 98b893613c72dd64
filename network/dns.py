"""Cluster DNS: the records of Services, endpoints and pods, as CoreDNS' plugin `kubernetes` answers them.

A name is absolute here: resolvers in the containers apply search lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .services import has_condition
from .view import ClusterView, parse_address

ZONE: Final = "cluster.local"
DNS_VERSION: Final = "1.1.0"
_REVERSE_ZONES: Final = (".in-addr.arpa", ".ip6.arpa")
_MAX_ALIASES: Final = 8
_INTERNET: Final = re.compile(
    "com|org|net|io|dev|app|cloud|ai|sh|co|edu|gov|mil|info|biz|xyz|tech|online|site|me|tv|us|uk|de|fr|eu|cn|jp|in"
    "|br|ca|au|nl|ch|se|no|fi|es|it|pl|ru|dk|be|at|cz|kr|sg|hk|tw|nz|za|ie"
)
"""The last labels of names of the internet, unless a namespace has such a name."""


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a query: records as text, each with its type, the aliases that led to them first."""

    records: tuple[tuple[str, str, str], ...] = ()
    """Name, type and value of each record."""
    exists: bool = True
    """Whether the name exists, possibly without a record of the type."""
    is_outside: bool = False
    """Whether the name is one of the internet, whose answer nobody knows."""
    code: str = ""
    """The response code, such as SERVFAIL, if it is not that of a name that exists or does not."""
    plugin: str = ""
    """The plugin of CoreDNS that has answered."""

    def values(self, record_type: str) -> list[str]:
        return [record[2] for record in self.records if record[1] == record_type]


_UNKNOWN: Final = Answer(exists=False)


def resolve(view: ClusterView, name: str, record_type: str = "A") -> Answer:
    """Answer a query for an absolute name, and follow aliases."""
    return resolve_with(view, name, record_type, lambda target: _query(view, target, record_type))


def resolve_with(
    view: ClusterView, name: str, record_type: str, query_target: Callable[[str], Answer]
) -> Answer:
    """Answer a query for an absolute name, and follow aliases, for whose targets `query_target` answers."""
    aliases: list[tuple[str, str, str]] = []
    answer = _query(view, name.rstrip(".").lower(), record_type)
    while record_type != "CNAME" and (targets := answer.values("CNAME")) and len(aliases) < _MAX_ALIASES:
        aliases += [record for record in answer.records if record[1] == "CNAME"]
        if any(record[1] != "CNAME" for record in answer.records):
            break  # the answer for the target has followed its aliases
        answer = query_target(targets[0].rstrip(".").lower())
    if not aliases:
        return answer
    records = dict.fromkeys((*aliases, *answer.records))
    return Answer(records=tuple(records), exists=True, is_outside=answer.is_outside, code=answer.code)


def outside_target(records: Sequence[tuple[str, str, str]]) -> str:
    """Return the name to which the last record of an answer, an alias, leads outside of the cluster; "" if there is none."""
    if not records or records[-1][1] != "CNAME":
        return ""
    target = records[-1][2].rstrip(".").lower()
    return "" if f".{target}".endswith((f".{ZONE}", *_REVERSE_ZONES)) else target


def _query(view: ClusterView, name: str, record_type: str) -> Answer:
    if name.endswith(_REVERSE_ZONES):
        return _reverse(view, name, record_type)
    if name == ZONE:
        return Answer()
    if name.endswith(f".{ZONE}"):
        return _query_zone(view, name, name.removesuffix(f".{ZONE}").split("."), record_type)
    *others, last = name.split(".")
    is_outside = bool(others and _INTERNET.fullmatch(last)) and view.namespace_labels(last) is None
    return Answer(exists=is_outside, is_outside=is_outside)


def _query_zone(view: ClusterView, name: str, inner: list[str], record_type: str) -> Answer:
    """Answer a query for a name in the cluster's zone, whose labels before the zone are `inner`."""
    answer = _UNKNOWN
    match inner:
        case ["svc"] | ["pod"]:
            answer = Answer()
        case ["dns-version"]:
            answer = Answer(records=((name, "TXT", DNS_VERSION),) if record_type == "TXT" else ())
        case [namespace, "svc" | "pod"]:
            answer = Answer() if view.namespace_labels(namespace) is not None else _UNKNOWN
        case [address, namespace, "pod"]:
            answer = _pod_record(view, name, address, namespace, record_type)
        case [service, namespace, "svc"]:
            answer = _service_records(view, name, (namespace, service), record_type)
        case [hostname, service, namespace, "svc"] if not hostname.startswith("_"):
            answer = _service_records(view, name, (namespace, service), record_type, hostname=hostname)
        case [port, protocol, service, namespace, "svc"] if protocol in ("_tcp", "_udp", "_sctp"):
            port_and_protocol = (port.removeprefix("_"), protocol.removeprefix("_").upper())
            answer = _service_records(view, name, (namespace, service), record_type, port=port_and_protocol)
    return answer


def _pod_record(view: ClusterView, name: str, label: str, namespace: str, record_type: str) -> Answer:
    """Return the address in a pod's name, which CoreDNS does not verify."""
    address = parse_address(label.replace("-", ".")) or parse_address(label.replace("-", ":"))
    if address is None or view.namespace_labels(namespace) is None:
        return _UNKNOWN
    return Answer(records=tuple(_address_records(name, [str(address)], record_type)))


def _service_records(
    view: ClusterView,
    name: str,
    key: tuple[str, str],
    record_type: str,
    *,
    hostname: str = "",
    port: tuple[str, str] | None = None,
) -> Answer:
    service = view.service(*key)
    if service is None:
        return _UNKNOWN
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        alias = (name, "CNAME", f"{spec['externalName'].rstrip('.')}.")
        return Answer(records=(alias,)) if not hostname and port is None else _UNKNOWN
    is_headless = spec.get("clusterIP") == "None"
    if is_headless or hostname:
        entries = [
            entry
            for entry in _endpoint_entries(view, key, port)
            if not hostname or entry.hostname == hostname
        ]
        if not entries:
            return _UNKNOWN
        return _endpoint_answer(name, key, entries, record_type)
    ports = [declared for declared in spec.get("ports") or () if _matches(declared, port)]
    if not ports:
        return _UNKNOWN
    if record_type == "SRV":
        target = f"{key[1]}.{key[0]}.svc.{ZONE}."
        return Answer(
            records=tuple((name, "SRV", f"0 100 {declared['port']} {target}") for declared in ports)
        )
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or ""]
    return Answer(records=tuple(_address_records(name, addresses, record_type)) if port is None else ())


class _EndpointEntry(Struct, frozen=True):
    hostname: str
    address: str
    port: int


def _endpoint_entries(
    view: ClusterView, key: tuple[str, str], port: tuple[str, str] | None
) -> Iterator[_EndpointEntry]:
    for tree in view.slices(*key):
        ports = [
            declared.get("port") or 0 for declared in tree.get("ports") or () if _matches(declared, port)
        ]
        if port is None and not ports:
            ports = [0]
        for endpoint in tree.get("endpoints") or ():
            if not has_condition(endpoint, "ready"):
                continue
            for address in endpoint.get("addresses") or ():
                for number in ports:
                    yield _EndpointEntry(_hostname(endpoint, address), address, number)


def _hostname(endpoint: ReadOnlyTree, address: str) -> str:
    """Return the first label of an endpoint's name: its host name, or its address with dashes."""
    return endpoint.get("hostname") or address.replace(".", "-").replace(":", "-")


def _endpoint_answer(
    name: str, key: tuple[str, str], entries: Iterable[_EndpointEntry], record_type: str
) -> Answer:
    if record_type == "SRV":
        suffix = f"{key[1]}.{key[0]}.svc.{ZONE}."
        texts = [f"0 100 {entry.port} {entry.hostname}.{suffix}" for entry in entries if entry.port]
        return Answer(records=tuple((name, "SRV", text) for text in dict.fromkeys(texts)))
    addresses = dict.fromkeys(entry.address for entry in entries)
    return Answer(records=tuple(_address_records(name, addresses, record_type)))


def _matches(declared: ReadOnlyTree, port: tuple[str, str] | None) -> bool:
    return port is None or ((declared.get("name") or ""), declared.get("protocol") or "TCP") == port


def _address_records(name: str, addresses: Iterable[str], record_type: str) -> Iterator[tuple[str, str, str]]:
    for text in addresses:
        address = parse_address(text)
        if address is not None and record_type == ("A" if address.version == 4 else "AAAA"):
            yield name, record_type, text


def _reverse(view: ClusterView, name: str, record_type: str) -> Answer:
    address = reverse_address(name)
    if address is None:
        return _UNKNOWN
    hosts = [
        f"{meta.name(service)}.{meta.namespace(service)}.svc.{ZONE}."
        for service in view.services_at(address)
        if address in (service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP")])
    ]
    for namespace, service in () if hosts else view.services_of_endpoint(address):
        hosts += [
            f"{entry.hostname}.{service}.{namespace}.svc.{ZONE}."
            for entry in _endpoint_entries(view, (namespace, service), None)
            if entry.address == address
        ]
    if not hosts:
        return _UNKNOWN
    records = tuple((name, "PTR", host) for host in dict.fromkeys(hosts))
    return Answer(records=records if record_type == "PTR" else ())


def reverse_name(address: str) -> str:
    """Return the name under which the name of an address is looked up."""
    return ip_address(address).reverse_pointer


def reverse_address(name: str) -> str | None:
    """Return the address of a name such as 4.3.2.1.in-addr.arpa."""
    if name.endswith(".in-addr.arpa"):
        address = parse_address(".".join(reversed(name.removesuffix(".in-addr.arpa").split("."))))
    else:
        digits = "".join(reversed(name.removesuffix(".ip6.arpa").split(".")))
        address = parse_address(":".join(digits[index : index + 4] for index in range(0, len(digits), 4)))
    return str(address) if address is not None else None

"""The namespaces of the system, its priority classes, and the service by which pods find the server."""

from collections.abc import Iterable, Sequence
from functools import partial
from ipaddress import ip_network

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import wellknown
from mockube.apimachinery.schema import minors
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.request_headers import RequestHeaders
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.packs.definitions import definition_trees
from mockube.apiserver.pki.cert_dir import PROXY_CLIENT

from .apiservices import api_services
from .authentication_trust import OWN_HEADERS, TrustedAuthorities, authentication_data, combine
from .flowcontrol import flow_control
from .required_object import RequiredObject

CONFIG_MAPS, NAMESPACES = ("", "v1", "configmaps"), ("", "v1", "namespaces")
SERVICES = ("", "v1", "services")
PRIORITY_CLASSES = ("scheduling.k8s.io", "v1", "priorityclasses")
SERVICE_CIDRS = ("networking.k8s.io", "v1", "servicecidrs")

SYSTEM_NAMESPACES = (
    wellknown.NAMESPACE_SYSTEM,
    wellknown.NAMESPACE_PUBLIC,
    wellknown.NAMESPACE_NODE_LEASE,
    wellknown.NAMESPACE_DEFAULT,
)
SERVICE = "kubernetes"
SERVICE_PORT = 443
CRITICAL = 2_000_000_000


class ServerProperties(Struct, frozen=True, kw_only=True):
    """The properties of a server that its bootstrap objects contain."""

    port: int
    service_ranges: Sequence[str]
    """The first is that of the Service `kubernetes`; a second one is of the other IP family."""
    client_ca: bytes
    proxy_ca: bytes = b""
    """The authority of the certificates with which the server proxies requests to other servers."""
    request_headers: RequestHeaders | None = None
    request_headers_ca: bytes = b""
    """The authority of the certificates of front proxies."""
    now: str
    minor: str = minors.NEWEST
    """The minor release of the server."""


def cluster_objects(properties: ServerProperties, groups: Sequence[Group]) -> Sequence[RequiredObject]:
    """Return the objects that every cluster needs, of served resources, in the order in which they can be created."""
    served = {(row.group, row.version, row.name) for group in groups for row in group.resources}
    return [
        required_object
        for required_object in _all_objects(properties, groups)
        if required_object.resource in served
    ]


def _all_objects(properties: ServerProperties, groups: Sequence[Group]) -> Iterable[RequiredObject]:
    return (
        *(RequiredObject(resource=NAMESPACES, name=name, is_recreated=True) for name in SYSTEM_NAMESPACES),
        *_priority_classes(),
        *_service(properties),
        authentication_config_map(properties),
        RequiredObject(
            resource=CONFIG_MAPS,
            name="kube-apiserver-legacy-service-account-token-tracking",
            namespace=wellknown.NAMESPACE_SYSTEM,
            content={"data": {"since": properties.now[: len("2030-01-01")]}},
        ),
        *flow_control(properties.minor),
        *api_services(groups),
    )


def authentication_config_map(properties: ServerProperties) -> RequiredObject:
    return RequiredObject(
        resource=CONFIG_MAPS,
        name="extension-apiserver-authentication",
        namespace=wellknown.NAMESPACE_SYSTEM,
        content={"data": authentication_data(_trusted_authorities(properties))},
        combine=partial(combine, now=parse_time(properties.now)),
        is_reconciled=True,
    )


def _trusted_authorities(properties: ServerProperties) -> TrustedAuthorities:
    """Return the authorities and headers by which other servers authenticate the requests of proxies, such as this server."""
    headers = properties.request_headers
    if headers is None:
        authorities, names = properties.proxy_ca, [PROXY_CLIENT]
        return TrustedAuthorities(
            properties.client_ca, authorities, replace(OWN_HEADERS, allowed_names=names)
        )
    if not properties.proxy_ca:
        return TrustedAuthorities(properties.client_ca, properties.request_headers_ca, headers)
    names = [*headers.allowed_names, PROXY_CLIENT] if headers.allowed_names else []
    authorities = properties.request_headers_ca + properties.proxy_ca
    return TrustedAuthorities(properties.client_ca, authorities, replace(headers, allowed_names=names))


def _priority_classes() -> Sequence[RequiredObject]:
    rows = (
        (
            "system-node-critical",
            CRITICAL + 1000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            CRITICAL,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    )
    return [
        RequiredObject(
            resource=PRIORITY_CLASSES, name=name, content={"value": value, "description": description}
        )
        for name, value, description in rows
    ]


def _service(properties: ServerProperties) -> Sequence[RequiredObject]:
    """Return the service, and the range of its address."""
    first = str(ip_network(properties.service_ranges[0])[1])
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": properties.now,
        "message": "Kubernetes default Service CIDR is ready",
    }
    port = {"name": "https", "protocol": "TCP", "port": SERVICE_PORT, "targetPort": properties.port}
    spec = {"ports": [port], "clusterIP": first, "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None"}
    labels = {"component": "apiserver", "provider": SERVICE}
    return (
        RequiredObject(
            resource=SERVICE_CIDRS,
            name=SERVICE,
            content={"spec": {"cidrs": [*properties.service_ranges]}},
            combine=_to_dual_stack,
            is_reconciled=len(properties.service_ranges) > 1,
            status={"conditions": [ready]},
            status_manager="kubernetes-service-cidr-controller",
            is_recreated=True,
        ),
        RequiredObject(
            resource=SERVICES,
            name=SERVICE,
            namespace=wellknown.NAMESPACE_DEFAULT,
            content={"metadata": {"labels": labels}, "spec": spec | {"type": "ClusterIP"}},
            is_recreated=True,
        ),
    )


def _to_dual_stack(present: Tree, required: Tree) -> Tree:
    """Add the second range if only the first is configured; keep any other difference."""
    is_first_alone = present["spec"]["cidrs"] == required["spec"]["cidrs"][:1]
    spec = required["spec"] if is_first_alone else present["spec"]
    return {"metadata": dict(present["metadata"]), "spec": spec}


DEFINITIONS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def packed_definitions(packs: Iterable[str]) -> Sequence[RequiredObject]:
    return [
        RequiredObject(
            resource=DEFINITIONS,
            name=tree["metadata"]["name"],
            content={"metadata": {"labels": tree["metadata"]["labels"]}, "spec": tree["spec"]},
            is_upgraded=True,
        )
        for pack in packs
        for tree in definition_trees(pack)
    ]

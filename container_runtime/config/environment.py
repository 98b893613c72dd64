"""The environment variables of a container, and the values of the downward API. Pure."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONTAINER_STATUSES
from mockube.container_runtime.disk_usage import DISK_BYTES
from mockube.container_runtime.simulation_values import CLUSTER_DNS

from .projections import NOT_ISSUED, Credentials, PodCredential
from .variables import expand_references

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLUSTER_DOMAIN: Final = "svc.cluster.local"
_MAP_ENTRY: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_NAME_BREAKS: Final = re.compile(r"[^A-Za-z0-9_]")
_MAX_DIGITS: Final = 18
_MAX_INT64: Final = str(2**63 - 1)


class References(Struct, frozen=True, kw_only=True):
    """The existing objects that a pod refers to."""

    config_maps: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    secrets: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    storage: Mapping[tuple[str, str], ReadOnlyTree] = field(default_factory=dict)
    """Claims, volumes, attachments and drivers, by the plural names of their resources and their names."""
    services: Sequence[ReadOnlyTree] = ()
    """The Services of the pod's namespace, and that of the API server."""
    tokens: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The tokens of the pod's service account, by audience and expiration seconds."""
    bundles: Sequence[ReadOnlyTree] = ()
    """All ClusterTrustBundles, if a volume has some."""
    credentials: Credentials = field(default_factory=dict)
    """The keys and certificates of the pod's volumes."""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """The allocatable resources of the pod's node."""
    disk_bytes: int = DISK_BYTES
    """The size of the disk of the pod's node."""
    cluster_dns: str = CLUSTER_DNS
    """The address of the cluster's name server."""
    started_config_maps: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    started_secrets: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    """The objects as they were when the container started, if they are noted: those in its variables and at subPaths."""

    def at_start(self) -> "References":
        """Return the references with the objects as they were when the container started."""
        if not self.started_config_maps and not self.started_secrets:
            return self
        return replace(
            self,
            config_maps={**self.config_maps, **self.started_config_maps},
            secrets={**self.secrets, **self.started_secrets},
        )

    def config_map(self, name: str) -> ReadOnlyTree | None:
        return self.config_maps.get(name)

    def secret(self, name: str) -> ReadOnlyTree | None:
        return self.secrets.get(name)

    @property
    def attaches_volumes(self) -> bool:
        return bool(self.storage)

    def trust_bundles(self) -> Sequence[ReadOnlyTree]:
        return self.bundles

    def credential(self, volume: str, index: int) -> PodCredential:
        return self.credentials.get((volume, index), PodCredential(problem=NOT_ISSUED))

    def cached_object(self, resource: Any, name: str) -> ReadOnlyTree | None:
        return self.storage.get((resource.plural, name))


_NO_REFERENCES: Final = References()


def environment_of(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    image: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables in the order in which a kubelet sets them: from the image, services, envFrom, env."""
    references = references.at_start()
    # A user whom the pod names has rarely an account in the image; its home is then the root folder.
    home_folder = "/" if security_context(pod, container).get("runAsUser") else "/root"
    variables = {"PATH": PATH, "HOSTNAME": hostname_of(pod), "HOME": home_folder, **(image or {})}
    variables |= _service_links(pod, _services_at_start(pod, container, references.services))
    for source in container.get("envFrom") or ():
        variables |= _env_from(source, references)
    for entry in container.get("env") or ():
        source = entry.get("valueFrom")
        if source is None:
            variables[entry["name"]] = expand_references([entry.get("value") or ""], variables)[0]
        elif (value := _value_from(source, pod, container, references)) is not None:
            variables[entry["name"]] = value
    return variables


def known_environment(pod: ReadOnlyTree, container: ReadOnlyTree) -> dict[str, str]:
    """Return the variables whose values are in the pod itself."""
    return environment_of(pod, container, _NO_REFERENCES)


def unknown_variables(container: ReadOnlyTree) -> set[str] | None:
    """Return the names of the variables from ConfigMaps and Secrets; None if the names are in those objects, too."""
    if container.get("envFrom"):
        return None
    return {
        entry["name"]
        for entry in container.get("env") or ()
        if {"configMapKeyRef", "secretKeyRef"} & (entry.get("valueFrom") or {}).keys()
    }


def security_context(pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, Any]:
    """Return the security context of a container, with what it has from its pod."""
    return {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}


def decoded_data(secret: ReadOnlyTree) -> dict[str, bytes]:
    """Return the values of a Secret; a value that is not base64 is left out."""
    values = {}
    for name, text in (secret.get("data") or {}).items():
        with suppress(ValueError):
            values[name] = b64decode(text or "")
    return values


def hostname_of(pod: ReadOnlyTree) -> str:
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        return str(spec.get("nodeName") or "")
    if spec.get("setHostnameAsFQDN") and (name := qualified_name(pod)):
        return name
    return short_hostname(pod)


def short_hostname(pod: ReadOnlyTree) -> str:
    spec = pod["spec"]
    return str(spec.get("hostnameOverride") or spec.get("hostname") or meta.name(pod))[:63].rstrip("-.")


def qualified_name(pod: ReadOnlyTree) -> str:
    """Return the name of a pod with its domain; "" if it has no domain, as those without a subdomain."""
    spec = pod["spec"]
    if not spec.get("subdomain") or spec.get("hostnameOverride"):
        return ""
    return f"{short_hostname(pod)}.{spec['subdomain']}.{meta.namespace(pod)}.{CLUSTER_DOMAIN}"


def _env_from(source: ReadOnlyTree, references: References) -> Mapping[str, str]:
    prefix = source.get("prefix") or ""
    if "configMapRef" in source:
        data = (references.config_maps.get(source["configMapRef"].get("name") or "") or {}).get("data") or {}
    else:
        secret = references.secrets.get((source.get("secretRef") or {}).get("name") or "") or {}
        data = {name: value.decode("utf-8", "replace") for name, value in decoded_data(secret).items()}
    return {f"{prefix}{name}": value for name, value in data.items()}


def _value_from(
    source: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> str | None:
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_value(pod, source["resourceFieldRef"], container, references.allocatable)
    if "configMapKeyRef" in source:
        selector = source["configMapKeyRef"]
        data = (references.config_maps.get(selector.get("name") or "") or {}).get("data") or {}
        return data.get(selector["key"])
    if "secretKeyRef" in source:
        selector = source["secretKeyRef"]
        value = decoded_data(references.secrets.get(selector.get("name") or "") or {}).get(selector["key"])
        return None if value is None else value.decode("utf-8", "replace")
    return None


def field_value(pod: ReadOnlyTree, path: str) -> str:
    """Return the value of a pod's field, as the downward API formats it."""
    entry = _MAP_ENTRY.fullmatch(path)
    if entry:
        entries = meta.labels(pod) if entry[1] == "labels" else meta.annotations(pod)
        return entries.get(entry[2], "")
    status = pod.get("status") or {}
    lists: Mapping[str, Sequence[Any]] = {
        "status.podIPs": [address["ip"] for address in status.get("podIPs") or ()],
        "status.hostIPs": [address["ip"] for address in status.get("hostIPs") or ()],
    }
    if path in lists:
        return ",".join(lists[path])
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = meta.labels(pod) if path.endswith("labels") else meta.annotations(pod)
        return "\n".join(f"{name}={_quote(value)}" for name, value in sorted(pairs.items()))
    value: Any = pod
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def resource_value(
    pod: ReadOnlyTree, selector: ReadOnlyTree, container: ReadOnlyTree, allocatable: Mapping[str, str]
) -> str:
    """Return a request or limit in units of the divisor, rounded up; an unset limit is the node's allocatable amount."""
    name = selector.get("containerName")
    if name:
        containers = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
        container = next((other for other in containers if other["name"] == name), container)
    kind, _, resource = str(selector["resource"]).partition(".")
    amounts = (container.get("resources") or {}).get(kind) or {}
    default = allocatable.get(resource, "0") if kind == "limits" else "0"
    amount = quantity.from_json(amounts.get(resource) or default)
    divisor = quantity.from_json(selector.get("divisor") or "1")
    number = amount.number / (divisor.number or Decimal(1))
    return (
        f"{number.to_integral_value(rounding=ROUND_CEILING):f}"
        if number.adjusted() < _MAX_DIGITS
        else _MAX_INT64
    )


def _services_at_start(
    pod: ReadOnlyTree, container: ReadOnlyTree, services: Sequence[ReadOnlyTree]
) -> Sequence[ReadOnlyTree]:
    """Return the Services that there were when a container started that runs: its variables never change."""
    status = pod.get("status") or {}
    statuses = (each for field in CONTAINER_STATUSES for each in status.get(field) or ())
    states = (each.get("state") or {} for each in statuses if each["name"] == container.get("name"))
    started = next(((state.get("running") or {}).get("startedAt") for state in states), None)
    if not started:
        return services
    return [
        service for service in services if (service["metadata"].get("creationTimestamp") or "") <= started
    ]


def _service_links(pod: ReadOnlyTree, services: Sequence[ReadOnlyTree]) -> Mapping[str, str]:
    links = pod["spec"].get("enableServiceLinks")
    variables: dict[str, str] = {}
    for service in services:
        is_server = meta.name(service) == "kubernetes" and meta.namespace(service) == "default"
        address = service["spec"].get("clusterIP") or "None"
        if address != "None" and (is_server or links is not False):
            variables |= dict(_service_variables(service, address))
    return variables


def _service_variables(service: ReadOnlyTree, address: str) -> Iterator[tuple[str, str]]:
    name = _NAME_BREAKS.sub("_", meta.name(service)).upper()
    ports = service["spec"].get("ports") or ()
    yield f"{name}_SERVICE_HOST", address
    for index, port in enumerate(ports):
        protocol = (port.get("protocol") or "TCP").lower()
        url = f"{protocol}://{join_host_port(address, port['port'])}"
        if index == 0:
            yield f"{name}_SERVICE_PORT", str(port["port"])
            yield f"{name}_PORT", url
        if port.get("name"):
            yield f"{name}_SERVICE_PORT_{_NAME_BREAKS.sub('_', port['name']).upper()}", str(port["port"])
        prefix = f"{name}_PORT_{port['port']}_{protocol.upper()}"
        yield prefix, url
        yield f"{prefix}_PROTO", protocol
        yield f"{prefix}_PORT", str(port["port"])
        yield f"{prefix}_ADDR", address

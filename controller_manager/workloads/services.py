"""The pods of a service, and their addresses and ports.

Pure. Upstream: endpointslice/util and pkg/api/v1/pod.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_LAST_CHANGE_TRIGGER_TIME
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key, Resource

HEADLESS = "None"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def selector_of(service: ReadOnlyTree) -> Mapping[str, str] | None:
    """None for a service without a selector, whose endpoints are written by users."""
    spec = service["spec"]
    return None if spec.get("type") == "ExternalName" else spec.get("selector")


def selects(service: ReadOnlyTree, labels: Mapping[str, str]) -> bool:
    """An empty selector selects everything."""
    selector = selector_of(service)
    return selector is not None and all(labels.get(key) == value for key, value in selector.items())


def has_cluster_ip(service: ReadOnlyTree) -> bool:
    return service["spec"].get("clusterIP", "") not in ("", HEADLESS)


def publishes_not_ready(service: ReadOnlyTree) -> bool:
    return service["spec"].get("publishNotReadyAddresses") is True


def is_reachable(pod: PodView, *, even_deleting: bool) -> bool:
    """It has an address and has not ended."""
    return not pod.is_terminal and bool(addresses_of(pod)) and (even_deleting or not pod.deleting)


def addresses_of(pod: PodView) -> list[str]:
    status = pod.object.get("status") or {}
    several = [entry["ip"] for entry in status.get("podIPs") or () if entry.get("ip")]
    return several or [ip for ip in (status.get("podIP"),) if ip]


def is_ipv6(address: str) -> bool:
    return ipaddress.ip_address(address).version == 6


def hostname_of(pod: PodView, service: ReadOnlyTree) -> str:
    """The name that the pod has under a headless service; empty where it has none."""
    spec = pod.object["spec"]
    is_its = spec.get("subdomain") == meta.name(service) and pod.key.namespace == meta.namespace(service)
    return (spec.get("hostname") or "") if is_its else ""


class Port(NamedTuple):
    """A port of a service, with the number where it leads in a pod."""

    name: str
    number: int
    protocol: str
    app_protocol: str


class PodPorts:
    """Where the ports of a service lead in each pod.

    The cost grows with the ports of the service and those of the pod, not with their product: each may have thousands.
    """

    def __init__(self, service: ReadOnlyTree) -> None:
        self._ports: Sequence[ReadOnlyTree] = service["spec"].get("ports") or ()
        self._named = {
            (target, port.get("protocol", "TCP"))
            for port in self._ports
            if isinstance(target := _target(port), str)
        }
        self._ports_by_numbers: dict[tuple[int | None, ...], tuple[Port, ...]] = {}

    def of(self, pod: PodView) -> tuple[Port, ...]:
        """Return the ports that lead somewhere in a pod: it may lack a named one. Equal results are one object."""
        numbers: dict[tuple[str, str], int] = {}
        for port in _ports(pod.object["spec"]) if self._named else ():
            named = (port.get("name", ""), port.get("protocol", "TCP"))
            if named in self._named:
                numbers.setdefault(named, int(port["containerPort"]))
        key = tuple(map(numbers.get, self._named))
        if key not in self._ports_by_numbers:
            self._ports_by_numbers[key] = tuple(self._resolve(numbers))
        return self._ports_by_numbers[key]

    def _resolve(self, numbers: Mapping[tuple[str, str], int]) -> Iterator[Port]:
        for port in self._ports:
            target, protocol = _target(port), port.get("protocol", "TCP")
            number = numbers.get((target, protocol)) if isinstance(target, str) else target
            if number is not None:
                yield Port(port.get("name", ""), number, protocol, port.get("appProtocol", ""))


def _target(service_port: ReadOnlyTree) -> int | str:
    """The target port: a number, or the name of a port of the pod."""
    target: int | str = service_port.get("targetPort", 0)
    return target if isinstance(target, str) else target or int(service_port["port"])


def _ports(spec: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Of what runs as long as the pod does."""
    sidecars = (
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    )
    for container in (*spec.get("containers", ()), *sidecars):
        yield from container.get("ports") or ()


class TriggerTimes(Struct, frozen=True):
    """When a service and the pods behind it last changed, as far as a reconciliation has seen it."""

    service: datetime
    pods: Mapping[str, datetime]
    """When each became ready or unready, by name."""

    @classmethod
    def of(cls, service: ReadOnlyTree, pods: Iterable[PodView], now: datetime) -> "TriggerTimes":
        times = ((pod.key.name, _ready_changed(pod)) for pod in pods)
        times_by_pod = {name: time for name, time in times if time is not None}
        return cls(meta.creation_timestamp(service) or now, times_by_pod)

    def annotation(self, before: "TriggerTimes | None") -> dict[str, str | None]:
        """Return the oldest of what is new as an annotation; the service's where nothing was seen before."""
        time = self.service if before is None else self._oldest_new(before)
        return {ANNOTATION_LAST_CHANGE_TRIGGER_TIME: format_time(time) if time else None}

    def _oldest_new(self, before: "TriggerTimes") -> datetime | None:
        new = [time for name, time in self.pods.items() if time > before.pods.get(name, _LONG_AGO)]
        return min([*new, *([self.service] if self.service > before.service else [])], default=None)


def _ready_changed(pod: PodView) -> datetime | None:
    ready = conditions.get(pod.object, "Ready")
    text = ready.get("lastTransitionTime") if ready else None
    return parse_time(text) if text else None


# --- which services a change concerns


def of_service(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.last_known),)


def of_pod(services: Resource[ReadOnlyTree], caches: Caches, change: Change) -> Iterator[Key]:
    """The services that select the pod, or did, if a field in its endpoints changed."""
    if (
        change.old is not None
        and change.new is not None
        and _endpoint_fields(change.old) == _endpoint_fields(change.new)
    ):
        return
    labels = [pod.labels for pod in change if pod is not None]
    for service in caches.of(services).in_namespace(change.last_known.key.namespace):
        if any(selects(service, pod_labels) for pod_labels in labels):
            yield Key(change.last_known.key.namespace, meta.name(service))


def _endpoint_fields(pod: PodView) -> tuple[object, ...]:
    """The fields of a pod from which endpoints are built."""
    spec = pod.object["spec"]
    named = (pod.uid, pod.labels, pod.node, spec.get("hostname"), spec.get("subdomain"))
    return (*named, addresses_of(pod), pod.is_ready, pod.is_terminal, pod.deleting)

"""Select the pods of a service, and resolve their addresses and ports.

Pure. Upstream: endpointslice/util and pkg/api/v1/pod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_LAST_CHANGE_TRIGGER_TIME
from mockube.client.cache.store import Caches, Change
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource

HEADLESS = "None"
PAUSE: Final = timedelta(microseconds=100)
"""The delay of a change of a pod for each pod of the service. Its endpoints are computed anew, which takes up to 10 us for each
pod, so that this uses at most a tenth of the time.
"""
_MIN_TIME: Final = datetime.min.replace(tzinfo=UTC)


def selector_of(service: ReadOnlyTree) -> Mapping[str, str] | None:
    """Return the selector; None for a service without one, whose endpoints users write."""
    spec = service["spec"]
    return None if spec.get("type") == "ExternalName" else spec.get("selector")


def selects(service: ReadOnlyTree, labels: Mapping[str, str]) -> bool:
    """Return whether the service selects pods with these labels; an empty selector selects all."""
    selector = selector_of(service)
    return selector is not None and all(labels.get(key) == value for key, value in selector.items())


def has_cluster_ip(service: ReadOnlyTree) -> bool:
    return service["spec"].get("clusterIP", "") not in ("", HEADLESS)


def publishes_not_ready(service: ReadOnlyTree) -> bool:
    return service["spec"].get("publishNotReadyAddresses") is True


def is_reachable(pod: PodView, *, even_deleting: bool) -> bool:
    """Return whether a pod has an address and is not terminal. With `even_deleting` it may be terminating."""
    return not pod.is_terminal and bool(addresses_of(pod)) and (even_deleting or not pod.deleting)


def addresses_of(pod: PodView) -> list[str]:
    status = pod.object.get("status") or {}
    addresses = [entry["ip"] for entry in status.get("podIPs") or () if entry.get("ip")]
    return addresses or [ip for ip in (status.get("podIP"),) if ip]


def is_ipv6(address: str) -> bool:
    return ":" in address


def hostname_of(pod: PodView, service: ReadOnlyTree) -> str:
    """Return the hostname of a pod in the domain of a headless service; empty if it has none."""
    spec = pod.object["spec"]
    is_in_domain = spec.get("subdomain") == meta.name(service) and pod.key.namespace == meta.namespace(
        service
    )
    return (spec.get("hostname") or "") if is_in_domain else ""


class ServicePort(NamedTuple):
    """A port of a service, with its resolved number in a pod."""

    name: str
    number: int
    protocol: str
    app_protocol: str


class PodPorts:
    """The ports of a service, which are resolved for each pod.

    The cost is linear in the number of ports of both, not in their product: each may have thousands.
    """

    def __init__(self, service: ReadOnlyTree) -> None:
        self._ports: Sequence[ReadOnlyTree] = service["spec"].get("ports") or ()
        self._target_names = {
            (target, port.get("protocol", "TCP"))
            for port in self._ports
            if isinstance(target := _target(port), str)
        }
        self._resolved_ports: dict[tuple[int | None, ...], tuple[ServicePort, ...]] = {}

    def of(self, pod: PodView) -> tuple[ServicePort, ...]:
        """Return the resolved ports, without named ports that the pod lacks. Equal results are the same object."""
        numbers: dict[tuple[str, str], int] = {}
        for port in _ports(pod.object["spec"]) if self._target_names else ():
            target = (port.get("name", ""), port.get("protocol", "TCP"))
            if target in self._target_names:
                numbers.setdefault(target, int(port["containerPort"]))
        key = tuple(map(numbers.get, self._target_names))
        if key not in self._resolved_ports:
            self._resolved_ports[key] = tuple(self._resolve(numbers))
        return self._resolved_ports[key]

    def _resolve(self, numbers: Mapping[tuple[str, str], int]) -> Iterator[ServicePort]:
        for port in self._ports:
            target, protocol = _target(port), port.get("protocol", "TCP")
            number = numbers.get((target, protocol)) if isinstance(target, str) else target
            if number is not None:
                yield ServicePort(port.get("name", ""), number, protocol, port.get("appProtocol", ""))


def _target(service_port: ReadOnlyTree) -> int | str:
    """Return the target port: a number, or the name of a port of the pod."""
    target: int | str = service_port.get("targetPort", 0)
    return target if isinstance(target, str) else target or int(service_port["port"])


def _ports(spec: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the ports of containers and sidecars."""
    sidecars = (
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    )
    for container in (*spec.get("containers", ()), *sidecars):
        yield from container.get("ports") or ()


class TriggerTimes(Struct, frozen=True):
    """The trigger times of a service and its pods, as of one reconciliation."""

    service: datetime
    pods: Mapping[str, datetime]
    """The times at which the pods became ready or unready, by name."""

    @classmethod
    def of(cls, service: ReadOnlyTree, pods: Iterable[PodView], now: datetime) -> "TriggerTimes":
        times_by_pod = {pod.key.name: pod.ready_changed for pod in pods if pod.ready_changed is not None}
        return cls(meta.creation_timestamp(service) or now, times_by_pod)

    def annotation(self, previous: "TriggerTimes | None") -> dict[str, str | None]:
        """Return the oldest new time as an annotation; without previous times, that of the service."""
        time = self.service if previous is None else self._oldest_new_time(previous)
        return {ANNOTATION_LAST_CHANGE_TRIGGER_TIME: format_time(time) if time else None}

    def _oldest_new_time(self, previous: "TriggerTimes") -> datetime | None:
        new_times = [time for name, time in self.pods.items() if time > previous.pods.get(name, _MIN_TIME)]
        return min([*new_times, *([self.service] if self.service > previous.service else [])], default=None)


# --- mapping of changes to services


def keys_of_pod(services: Resource[ReadOnlyTree], caches: Caches, change: Change) -> Iterator[Key]:
    """Map a change of a pod to the services that select or selected it, if its endpoints change."""
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
    """Return the fields of a pod that its endpoints depend on."""
    spec = pod.object["spec"]
    metadata = (pod.uid, pod.labels, pod.node, spec.get("hostname"), spec.get("subdomain"))
    return (*metadata, addresses_of(pod), pod.is_ready, pod.is_terminal, pod.deleting)

"""The endpoints that a service should have, in groups that share their ports.

Upstream: k8s.io/endpointslice, utils.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.endpoint_slices import Endpoints, Ports, sort_ports

_RESERVED_LABELS: Final = {
    wellknown.LABEL_SERVICE_NAME,
    wellknown.LABEL_ENDPOINT_SLICE_MANAGED_BY,
    wellknown.LABEL_HEADLESS_SERVICE,
}


def address_types(service: ReadOnlyTree) -> tuple[str, ...]:
    spec = service["spec"]
    families = tuple(spec.get("ipFamilies") or ())
    if families:
        return families
    address = spec.get("clusterIP", "")
    if address in ("", services.HEADLESS):
        return ("IPv4", "IPv6")
    return ("IPv6",) if services.is_ipv6(address) else ("IPv4",)


def group_by_ports(
    service: ReadOnlyTree,
    pods: Iterable[PodView],
    address_type: str,
    node_of: Callable[[str], ReadOnlyTree | None],
) -> dict[Ports, Endpoints]:
    groups: dict[Ports, Endpoints] = {}
    pod_ports = services.PodPorts(service)
    for pod in pods:
        if not services.is_reachable(pod, even_deleting=True):
            continue
        node = node_of(pod.node)
        group = groups.setdefault(sort_ports(pod_ports.of(pod)), {})
        if node is None and not services.publishes_not_ready(service):
            continue  # the creation of the node requeues the service
        addresses = [
            address
            for address in services.addresses_of(pod)
            if services.is_ipv6(address) == (address_type == "IPv6")
        ]
        if addresses:
            group[pod.uid] = _endpoint(service, pod, addresses, node)
    return groups


def _endpoint(
    service: ReadOnlyTree, pod: PodView, addresses: list[str], node: ReadOnlyTree | None
) -> dict[str, Any]:
    published = services.publishes_not_ready(service)
    hostname = services.hostname_of(pod, service)
    zone = meta.labels(node).get(wellknown.LABEL_ZONE) if node else None
    namespace, name = pod.key
    return {
        "addresses": addresses,
        "conditions": {
            "ready": published or (pod.is_ready and not pod.deleting),
            "serving": pod.is_ready,
            "terminating": pod.deleting,
        },
        **({"hostname": hostname} if hostname else {}),
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": name, "uid": pod.uid},
        **({"nodeName": pod.node} if pod.node else {}),
        **({"zone": zone} if zone else {}),
    }


def labels_of(service: ReadOnlyTree, manager: str) -> dict[str, str]:
    """Return the labels of the service's slices: its own labels, and those for the service's name and the manager."""
    own = {key: value for key, value in meta.labels(service).items() if key not in _RESERVED_LABELS}
    headless = {} if services.has_cluster_ip(service) else {wellknown.LABEL_HEADLESS_SERVICE: ""}
    return {
        **own,
        **headless,
        wellknown.LABEL_SERVICE_NAME: meta.name(service),
        wellknown.LABEL_ENDPOINT_SLICE_MANAGED_BY: manager,
    }

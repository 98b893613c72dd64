"""The claims of a pod for devices, and the allocation of devices for them on a node."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.devices.allocation import (
    DeviceAllocationError,
    DeviceAllocator,
    RequestAlternative,
    allocation_of,
)
from mockube.controller_manager.scheduler.devices.pools import DeviceId, gather_pools
from mockube.controller_manager.workloads.device_claims import (
    allocation,
    claim_name,
    has_claim,
    is_for_pod,
    pod_claims,
)


class DeviceSnapshot(Struct, frozen=True, kw_only=True):
    """The state of devices that one scheduling decision reads."""

    claims: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    slices: Callable[[str], Sequence[ReadOnlyTree]]
    """Returns the ResourceSlices that a node may use, by its name."""
    in_use: Container[DeviceId]
    in_flight: Mapping[str, ReadOnlyTree]
    """The allocations that are not in the cache yet, by the uid of the claim."""
    gates: FeatureGates = field(default_factory=FeatureGates)


def device_ids(allocated: ReadOnlyTree) -> Iterator[DeviceId]:
    """Yield the devices of an allocation, without those with admin access, which stay available to others."""
    for result in (allocated.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield DeviceId(result["driver"], result["pool"], result["device"])


def waits_for_claims(pod: PodView, claims: Lister[ReadOnlyTree]) -> bool:
    """Return whether a claim of the pod does not exist yet, belongs to another pod, or is being deleted."""

    def is_unusable(claim: ReadOnlyTree | None, is_from_template: bool) -> bool:  # noqa: FBT001 - as it is called
        return claim is None or meta.is_deleting(claim) or (is_from_template and not is_for_pod(pod, claim))

    return has_claim(pod, claims, is_unusable)


def claims_of(pod: PodView, claims: Lister[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    names = (claim_name(pod, pod_claim) for pod_claim in pod_claims(pod))
    candidates = (claims.get(pod.key.namespace, name) for name in dict.fromkeys(names) if name is not None)
    return [claim for claim in candidates if claim is not None]


def allocate(
    pod: PodView, node: ReadOnlyTree, devices: DeviceSnapshot, now: str
) -> Mapping[str, dict[str, Any]]:
    """Return the allocations of the pod's unallocated claims on a feasible node, by the uid of the claim."""
    unallocated = [claim for claim in claims_of(pod, devices.claims) if allocation(claim) is None]
    requests = [
        alternatives
        for claim in unallocated
        if not isinstance(alternatives := requests_of(claim, devices.classes), str)
    ]
    allocator = allocator_of(unallocated, requests, node, devices)
    if not allocator.run():
        raise DeviceAllocationError("the devices no longer exist")
    name = meta.name(node)
    return {
        meta.uid(claim): allocation_of(allocator, number, name, now)
        for number, claim in enumerate(unallocated)
    }


def allocator_of(
    claims: Sequence[ReadOnlyTree],
    requests: Sequence[Sequence[Sequence[RequestAlternative]]],
    node: ReadOnlyTree,
    devices: DeviceSnapshot,
) -> DeviceAllocator:
    pools = gather_pools(devices.slices(meta.name(node)), node)
    return DeviceAllocator(
        pools=pools, claims=claims, requests=requests, in_use=devices.in_use, gates=devices.gates
    )


def requests_of(
    claim: ReadOnlyTree, classes: Lister[ReadOnlyTree]
) -> Sequence[Sequence[RequestAlternative]] | str:
    """Return the requests of a claim, or the reason why they cannot be satisfied."""
    requests = []
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        specs = [("", request["exactly"])] if "exactly" in request else _subrequests(request)
        alternatives = []
        for subrequest, spec in specs:
            device_class = classes.get("", spec["deviceClassName"])
            name = f"{request['name']}/{subrequest}" if subrequest else request["name"]
            if device_class is None:
                return f"request {name}: device class {spec['deviceClassName']} does not exist"
            alternatives.append(
                RequestAlternative(
                    base=request["name"], subrequest=subrequest, spec=spec, device_class=device_class
                )
            )
        requests.append(alternatives)
    return requests


def _subrequests(request: ReadOnlyTree) -> list[tuple[str, ReadOnlyTree]]:
    return [(subrequest["name"], subrequest) for subrequest in request.get("firstAvailable") or ()]

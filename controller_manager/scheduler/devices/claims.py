"""The claims of a pod as the scheduler sees them, and the filter that finds devices for them on a node."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.scheduler.devices.allocation import (
    AllocationError,
    Alternative,
    Search,
    allocation_of,
)
from mockube.controller_manager.scheduler.devices.pools import DeviceId, gather
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.device_claims import (
    allocation,
    claim_name,
    has_claim,
    is_for_pod,
    is_reserved_for,
    pod_claims,
    reserved_for,
)
from mockube.controller_manager.workloads.node_selectors import selects

MAX_CONSUMERS: Final = 256
_NONE: Final = Refusal(("cannot allocate all claims",), is_final=True)
_INVALID: Final = Refusal(("invalid resource pools were encountered",), is_final=True)
_ELSEWHERE: Final = Refusal(("resourceclaim not available on the node",), is_final=True)
_IN_USE: Final = Refusal(("resourceclaim in use",), is_final=True)


class DeviceSnapshot(Struct, frozen=True, kw_only=True):
    """What one decision reads."""

    claims: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    slices: Callable[[str], Sequence[ReadOnlyTree]]
    """Those that a node of this name may use."""
    in_use: Container[DeviceId]
    in_flight: Mapping[str, ReadOnlyTree]
    """Allocations that are decided and not in the cache yet, by the uid of the claim."""


def device_ids(allocated: ReadOnlyTree) -> Iterator[DeviceId]:
    """Devices with admin access stay free for others."""
    for result in (allocated.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield DeviceId(result["driver"], result["pool"], result["device"])


def waits_for_claims(pod: PodView, claims: Lister[ReadOnlyTree]) -> bool:
    """Whether a claim is not there yet, is not the pod's, or is going: nothing is to be tried then."""

    def is_unusable(claim: ReadOnlyTree | None, is_made: bool) -> bool:  # noqa: FBT001 - as it is called
        return claim is None or meta.is_deleting(claim) or (is_made and not is_for_pod(pod, claim))

    return has_claim(pod, claims, is_unusable)


def claims_of(pod: PodView, claims: Lister[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    names = (claim_name(pod, pod_claim) for pod_claim in pod_claims(pod))
    candidates = (claims.get(pod.key.namespace, name) for name in dict.fromkeys(names) if name is not None)
    return [claim for claim in candidates if claim is not None]


def check_claims(pod: PodInfo, devices: DeviceSnapshot) -> Check | Refusal:
    """What nodes are checked for, or why no node will do."""
    claims = claims_of(pod.view, devices.claims)
    for claim in claims:
        if len(reserved_for(claim)) >= MAX_CONSUMERS and not is_reserved_for(pod.view, claim):
            return _IN_USE
    waiting = [claim for claim in claims if allocation(claim) is None]
    for claim in waiting:
        if meta.uid(claim) in devices.in_flight:
            return Refusal(
                (f"resource claim {Key.of(claim)} is in the process of being allocated",), is_final=True
            )
    requests = []
    for claim in waiting:
        alternatives = _requests(claim, devices.classes)
        if isinstance(alternatives, Refusal):
            return alternatives
        requests.append(alternatives)
    return _check_of(claims, waiting, requests, devices)


def _check_of(
    claims: Sequence[ReadOnlyTree],
    waiting: Sequence[ReadOnlyTree],
    requests: Sequence[Sequence[Sequence[Alternative]]],
    devices: DeviceSnapshot,
) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        for claim in claims:
            selector = (allocation(claim) or {}).get("nodeSelector")
            if selector is not None and not selects(selector, node.node):
                return _ELSEWHERE
        if not waiting:
            return None
        search = _search(waiting, requests, node.node, devices)
        try:
            is_found = search.run()
        except AllocationError as error:
            return Refusal((f'running "DynamicResources" filter plugin: {error}',), is_error=True)
        if is_found:
            return None
        return _NONE if all(pool.is_valid for pool in search.pools) else _INVALID

    return check


def allocate(
    pod: PodView, node: ReadOnlyTree, devices: DeviceSnapshot, now: str
) -> Mapping[str, dict[str, Any]]:
    """The allocations of the pod's claims that have none, by the claims' uids, on a node that was found to do."""
    waiting = [claim for claim in claims_of(pod, devices.claims) if allocation(claim) is None]
    requests = [
        alternatives
        for claim in waiting
        if not isinstance(alternatives := _requests(claim, devices.classes), Refusal)
    ]
    search = _search(waiting, requests, node, devices)
    if not search.run():
        raise AllocationError("the devices no longer exist")
    name = meta.name(node)
    return {meta.uid(claim): allocation_of(search, number, name, now) for number, claim in enumerate(waiting)}


def _search(
    claims: Sequence[ReadOnlyTree],
    requests: Sequence[Sequence[Sequence[Alternative]]],
    node: ReadOnlyTree,
    devices: DeviceSnapshot,
) -> Search:
    pools = gather(devices.slices(meta.name(node)), node)
    return Search(pools=pools, claims=claims, requests=requests, in_use=devices.in_use)


def _requests(
    claim: ReadOnlyTree, classes: Lister[ReadOnlyTree]
) -> Sequence[Sequence[Alternative]] | Refusal:
    requests = []
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        specs = [("", request["exactly"])] if "exactly" in request else _subrequests(request)
        alternatives = []
        for sub, spec in specs:
            device_class = classes.get("", spec["deviceClassName"])
            name = f"{request['name']}/{sub}" if sub else request["name"]
            if device_class is None:
                problem = f"request {name}: device class {spec['deviceClassName']} does not exist"
                return Refusal((problem,), is_final=True)
            alternatives.append(
                Alternative(base=request["name"], sub=sub, spec=spec, device_class=device_class)
            )
        requests.append(alternatives)
    return requests


def _subrequests(request: ReadOnlyTree) -> list[tuple[str, ReadOnlyTree]]:
    return [(subrequest["name"], subrequest) for subrequest in request.get("firstAvailable") or ()]

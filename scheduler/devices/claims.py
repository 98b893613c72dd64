"""The claims of a pod for devices, and the allocation of devices for them on a node. Pure."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers import device_claims
from mockube.client.podview import PodView
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .allocation import (
    ChosenDevice,
    DeviceAllocationError,
    DeviceAllocator,
    RequestAlternative,
    allocation_of,
)
from .extended_resources import claim_for, provided_resources, requests_for
from .fingerprints import DeviceFingerprints
from .pools import DeviceId, SlicesOfPool, gather_pools, no_slices

ClaimRequests = Sequence[Sequence[RequestAlternative]]
"""The alternatives of each request of a claim."""


def no_claim(_: str) -> ReadOnlyTree | None:
    return None


class DeviceSnapshot(Struct, frozen=True, kw_only=True):
    """The state of devices that one scheduling decision reads."""

    claims: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    slices: Callable[[str], Sequence[ReadOnlyTree]]
    """Returns the ResourceSlices that a node may use, by its name."""
    slices_of_pool: SlicesOfPool = no_slices
    in_use: Container[DeviceId]
    in_flight: Mapping[str, ReadOnlyTree]
    """The allocations that are not in the cache yet, by the uid of the claim."""
    gates: FeatureGates = field(default_factory=FeatureGates)
    extended_classes: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    """The device classes that provide extended resources, by the name of the resource."""
    extended_resource_claim: Callable[[str], ReadOnlyTree | None] = no_claim
    """Returns the claim for extended resources of a pod, by its uid."""
    is_of_single_nodes: bool = False
    """Whether each slice is of one node, and no rule adds taints."""
    fingerprints: DeviceFingerprints = field(default_factory=DeviceFingerprints)
    claims_of_pods: dict[str, "DeviceClaims"] = field(default_factory=dict)
    """The claims of pods, by their uid: filters, scores and the reservation of a decision read the same."""


def device_ids(allocated: ReadOnlyTree) -> Iterator[DeviceId]:
    """Yield the devices of an allocation, without those with admin access, which stay available to others."""
    for result in (allocated.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield DeviceId(result["driver"], result["pool"], result["device"])


def waits_for_claims(pod: PodView, claims: Lister[ReadOnlyTree]) -> bool:
    """Return whether a claim of the pod does not exist yet, belongs to another pod, or is being deleted."""

    def is_unusable(claim: ReadOnlyTree | None, is_from_template: bool) -> bool:  # noqa: FBT001 - as it is called
        return (
            claim is None
            or meta.is_deleting(claim)
            or (is_from_template and not device_claims.is_for_pod(pod, claim))
        )

    return device_claims.has_claim(pod, claims, is_unusable)


class DeviceClaims(Struct, frozen=True, kw_only=True):
    """The claims of a pod, with the one that the scheduler creates for its extended resources; upstream's claimStore."""

    pod: PodView
    of_user: Sequence[ReadOnlyTree]
    unallocated: Sequence[ReadOnlyTree] = ()
    """The claims of the user without devices."""
    requests: Sequence[ClaimRequests | str] = ()
    """The requests of each unallocated claim, or the reason why they cannot be satisfied."""
    extended_resources: Sequence[str] = ()
    """The extended resources that device classes provide."""
    stale: ReadOnlyTree | None = None
    """The claim for extended resources that an earlier attempt has created."""
    _by_resources: dict[tuple[str, ...], "NodeClaims"] = field(default_factory=dict)
    """The claims on nodes without these extended resources: many nodes lack the same ones."""
    _searches: dict[str, "DeviceSearch"] = field(default_factory=dict)
    """The results of searches, by the name of the node."""

    @classmethod
    def of(cls, pod: PodInfo, devices: DeviceSnapshot) -> "DeviceClaims":
        claims = devices.claims_of_pods.get(pod.view.uid)
        if claims is None:
            claims = devices.claims_of_pods[pod.view.uid] = cls._collect(pod, devices)
        return claims

    @classmethod
    def _collect(cls, pod: PodInfo, devices: DeviceSnapshot) -> "DeviceClaims":
        resources = provided_resources(pod.requested, devices.extended_classes)
        of_user = claims_of(pod.view, devices.claims)
        unallocated = device_claims.unallocated_claims(of_user)
        return cls(
            pod=pod.view,
            of_user=of_user,
            unallocated=unallocated,
            requests=[requests_of(claim, devices.classes) for claim in unallocated],
            extended_resources=resources,
            stale=devices.extended_resource_claim(pod.view.uid) if resources else None,
        )

    @property
    def is_empty(self) -> bool:
        return not self.of_user and not self.extended_resources

    def on(self, node: NodeInfo, devices: DeviceSnapshot) -> "NodeClaims":
        """Return the claims to allocate on a node: it may provide some of the extended resources without devices."""
        resources = tuple(name for name in self.extended_resources if not node.allocatable[name])
        claims = self._by_resources.get(resources)
        if claims is None:
            claims = self._by_resources[resources] = self._without(resources, devices)
        return claims

    def search(self, node: NodeInfo, devices: DeviceSnapshot) -> "DeviceSearch":
        """Search for devices on a node, once in a decision: it may take exponentially many steps.

        Raises `DeviceAllocationError`.
        """
        search = self._searches.get(node.name)
        if search is None:
            search = self._searches[node.name] = _search(self.on(node, devices), node.node, devices)
        return search

    def _without(self, resources: Sequence[str], devices: DeviceSnapshot) -> "NodeClaims":
        """Return the claims to allocate on nodes that do not provide these extended resources."""
        satisfiable = [requests for requests in self.requests if not isinstance(requests, str)]
        if not resources and (not self.of_user or not self.extended_resources):
            return NodeClaims(self.unallocated, satisfiable)
        # Upstream creates a claim without requests if the pod has other claims.
        needed = requests_for(self.pod.object["spec"], resources, devices.extended_classes)
        extended = claim_for(self.pod, needed.requests)
        requests = requests_of(extended, devices.classes)
        if not isinstance(requests, str):
            satisfiable.append(requests)
        return NodeClaims([*self.unallocated, extended], satisfiable, extended, needed.mappings)


class NodeClaims(NamedTuple):
    """The claims of a pod that are to be allocated on a node."""

    claims: Sequence[ReadOnlyTree]
    requests: Sequence[ClaimRequests]
    """The requests of each claim."""
    extended: ReadOnlyTree | None = None
    """The last claim, if it is for extended resources."""
    mappings: Sequence[Mapping[str, str]] = ()
    """The requests of the last claim that each container uses."""


class DeviceSearch(NamedTuple):
    """The result of the search for devices on a node."""

    claims: NodeClaims
    chosen: Sequence[Sequence[ChosenDevice]] | None
    """The devices of each claim; None if the node lacks devices."""
    has_invalid_pools: bool


class DeviceReservation(NamedTuple):
    """The devices that a pod gets on its node."""

    of_user: Sequence[ReadOnlyTree]
    """The claims of the user, as they were before."""
    allocations: dict[str, ReadOnlyTree]
    """The allocations that are not written yet, by the uid of the claim."""
    extended: ReadOnlyTree | None = None
    """The claim for extended resources that is to be created."""
    mappings: Sequence[Mapping[str, str]] = ()

    @property
    def is_bindable(self) -> bool:
        """Whether the pod can be bound. Upstream creates a claim that no container uses, and fails then."""
        return self.extended is None or bool(self.mappings)


def claims_of(pod: PodView, claims: Lister[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    """Return the claims of a pod that a user has named."""
    names = (device_claims.claim_name(pod, pod_claim) for pod_claim in device_claims.pod_claims(pod))
    candidates = (claims.get(pod.key.namespace, name) for name in dict.fromkeys(names) if name is not None)
    return [claim for claim in candidates if claim is not None]


def allocate(pod: PodInfo, node: NodeInfo, devices: DeviceSnapshot, now: str) -> DeviceReservation:
    """Allocate the claims of a pod on a feasible node."""
    claims = DeviceClaims.of(pod, devices)
    on_node, chosen, _ = claims.search(node, devices)
    if chosen is None:
        raise DeviceAllocationError("the devices no longer exist")
    allocations: dict[str, ReadOnlyTree] = {
        meta.uid(claim): allocation_of(claim, chosen_devices, node.name, now)
        for claim, chosen_devices in zip(on_node.claims, chosen, strict=True)
    }
    return DeviceReservation(claims.of_user, allocations, on_node.extended, on_node.mappings)


def _search(claims: NodeClaims, node: ReadOnlyTree, devices: DeviceSnapshot) -> DeviceSearch:
    """Search for devices for claims whose classes exist."""
    pools = gather_pools(
        devices.slices(meta.name(node)),
        node,
        devices.slices_of_pool,
        has_counters=device_claims.has_shared_counters(devices.gates),
    )
    allocator = DeviceAllocator(
        pools=pools,
        claims=claims.claims,
        requests=claims.requests,
        in_use=devices.in_use,
        gates=devices.gates,
    )
    chosen = allocator.results if allocator.run() else None
    return DeviceSearch(claims, chosen, not all(pool.is_valid for pool in pools))


def requests_of(claim: ReadOnlyTree, classes: Lister[ReadOnlyTree]) -> ClaimRequests | str:
    """Return the requests of a claim, or the reason why they cannot be satisfied."""
    requests = []
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        specs = (
            [("", request["exactly"])]
            if "exactly" in request
            else [(subrequest["name"], subrequest) for subrequest in request.get("firstAvailable") or ()]
        )
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

"""The claims of a pod, and the volumes to which they can be bound on a node. Pure. Upstream: plugins/volumebinding.

A claim of a class with WaitForFirstConsumer is bound after the pod has a node: the scheduler chooses a node for which there
are volumes, writes the choice, and binds the pod when its claims are bound.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.labels import from_label_selector
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED, LABEL_HOSTNAME
from mockube.client.cache.store import Indexer, Lister, Store
from mockube.client.component_helpers.indexes import BY_ATTACHED_NODE, node_of_attachment
from mockube.client.component_helpers.node_selectors import matches_term, required_hostnames, selects
from mockube.client.component_helpers.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    best_match,
    mismatch_reason,
    request,
    waits_for_consumer,
)
from mockube.client.resources import Key

from .podinfo import PodInfo

_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"


class ClaimBinding(NamedTuple):
    """A claim and the volume to which it will be bound; None for a volume that is provisioned for the node."""

    claim: ReadOnlyTree
    volume: ReadOnlyTree | None
    is_written: bool = False
    """Whether the volume names the claim already, or another pod of the claim has begun to write that."""
    capacity: ReadOnlyTree | None = None
    """The CSIStorageCapacity of a volume that is provisioned, if its driver publishes capacities."""


class AssumedBindings:
    """The bindings in progress: a claim that several pods use is bound once, for one node. kube-scheduler's assume caches."""

    def __init__(self) -> None:
        self._pods: dict[str, list[str]] = {}
        """The uids of claims, by the uid of the pod for which they are bound."""
        self._claims: dict[str, list[tuple[str, ClaimBinding]]] = {}
        """The node and the binding of each claim, once for each pod, by the claim's uid."""
        self._volumes: Counter[str] = Counter()
        """How many bindings each volume has, by its name; without zeros."""

    def assume(self, pod_uid: str, node: str, bindings: Iterable[ClaimBinding]) -> None:
        for binding in bindings:
            uid = meta.uid(binding.claim)
            self._claims.setdefault(uid, []).append((node, binding))
            self._count(binding, 1)
            self._pods.setdefault(pod_uid, []).append(uid)

    def forget(self, pod_uid: str) -> None:
        for uid in self._pods.pop(pod_uid, ()):
            _, binding = self._claims[uid].pop()
            self._count(binding, -1)
            if not self._claims[uid]:
                del self._claims[uid]

    def binding_of(self, claim: ReadOnlyTree) -> tuple[str, ClaimBinding] | None:
        """Return the node for which a claim is being bound, and the binding; None if it is not."""
        assumed = self._claims.get(meta.uid(claim))
        return None if assumed is None else assumed[0]

    def has_volume(self, name: str) -> bool:
        """Return whether a claim is being bound to a volume."""
        return name in self._volumes

    def _count(self, binding: ClaimBinding, change: int) -> None:
        if binding.volume is not None:
            name = meta.name(binding.volume)
            self._volumes[name] += change
            if not self._volumes[name]:
                del self._volumes[name]


_BY_USE: Final = "claim-or-class"
"""The index of volumes: by the claim that they name, else by their class."""
_BY_ATTACHED_VOLUME: Final = "attached-volume"
"""The index of VolumeAttachments by their volume."""
_BY_LIMITED_DRIVER: Final = "limited-driver"
"""The index of CSINodes by the drivers that can attach only some number of volumes there."""


def _use_of_volume(volume: ReadOnlyTree) -> Iterable[str]:
    reference = volume["spec"].get("claimRef")
    if reference is not None:
        return (f"claim {reference['namespace']}/{reference['name']}",)
    return (f"class {storage_class_name(volume)}",)


def _limited_drivers(csi_node: ReadOnlyTree) -> Iterable[str]:
    for driver in csi_node["spec"].get("drivers") or ():
        if (driver.get("allocatable") or {}).get("count") is not None:
            yield driver["name"]


def _volume_of_attachment(attachment: ReadOnlyTree) -> Iterable[str]:
    name = (attachment["spec"].get("source") or {}).get("persistentVolumeName")
    return (name,) if name else ()


INDEXES: Final[Mapping[str, Sequence[tuple[str, Indexer]]]] = {
    "volumes": ((_BY_USE, _use_of_volume),),
    "csi_nodes": ((_BY_LIMITED_DRIVER, _limited_drivers),),
    "attachments": (
        (BY_ATTACHED_NODE, node_of_attachment),
        (_BY_ATTACHED_VOLUME, _volume_of_attachment),
    ),
}
"""The names and the functions of the indexes that listers of Storage must have."""


def stored(objects: Iterable[ReadOnlyTree] = ()) -> Store[ReadOnlyTree]:
    """Return objects in a store that has all indexes."""
    store: Store[ReadOnlyTree] = Store()
    for name, function in chain.from_iterable(INDEXES.values()):
        store.add_index(name, function)
    for obj in objects:
        store.put(Key.of(obj), obj)
    return store


class Storage(Struct, frozen=True, kw_only=True):
    """The listers of claims, volumes and what storage has, and the bindings in progress."""

    claims: Lister[ReadOnlyTree]
    volumes: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    csi_nodes: Lister[ReadOnlyTree] = field(default_factory=stored)
    drivers: Lister[ReadOnlyTree] = field(default_factory=stored)
    capacities: Lister[ReadOnlyTree] = field(default_factory=stored)
    attachments: Lister[ReadOnlyTree] = field(default_factory=stored)
    """VolumeAttachments."""
    assumed: AssumedBindings = field(default_factory=AssumedBindings)

    @property
    def limited_drivers(self) -> frozenset[str]:
        """The drivers that can attach only some number of volumes to a node."""
        return frozenset(self.csi_nodes.index_counts(_BY_LIMITED_DRIVER))

    def nodes_of_volume(self, volume: str) -> Sequence[str]:
        """Return the names of the nodes to which a volume is attached."""
        attachments = self.attachments.by_index(_BY_ATTACHED_VOLUME, volume)
        return [attachment["spec"]["nodeName"] for attachment in attachments]

    def volumes_for(self, claim: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
        """Return the volumes that name a claim, and those of its class that name none."""
        return [
            *self.volumes.by_index(_BY_USE, f"claim {meta.namespaced_name(claim)}"),
            *self.volumes.by_index(_BY_USE, f"class {storage_class_name(claim)}"),
        ]


class PodVolumeClaims(Struct):
    bound: list[ReadOnlyTree] = field(default_factory=list)
    """The claims that are bound."""
    unbound: list[ReadOnlyTree] = field(default_factory=list)
    """The claims that are bound after the pod has a node."""
    _candidates: dict[str, "VolumeCandidates"] = field(default_factory=dict)
    """The volumes for each unbound claim, by the claim's uid."""

    def __bool__(self) -> bool:
        return bool(self.bound or self.unbound)

    def assign(self, node: ReadOnlyTree, storage: Storage) -> list[ClaimBinding] | str:
        """Return the bindings of the unbound claims on a node, or the reason why one of them cannot be bound there.

        Claims get volumes in the order of their size, so that each gets the smallest that fits.
        """
        bindings: list[ClaimBinding] = []
        assigned: set[str] = set()
        to_provision: list[ReadOnlyTree] = []
        for claim in sorted(self.unbound, key=request) if len(self.unbound) > 1 else self.unbound:
            binding = self._existing_binding(claim, node, storage, assigned)
            if isinstance(binding, str):
                return binding
            if binding is None:
                to_provision.append(claim)
            elif binding.volume is not None:
                assigned.add(meta.name(binding.volume))
                bindings.append(binding)
        for claim in to_provision:
            provision = _provision(claim, node, storage)
            if isinstance(provision, str):
                return provision
            bindings.append(provision)
        return bindings

    def candidates(self, claim: ReadOnlyTree, storage: Storage) -> "VolumeCandidates":
        """Return the volumes to which an unbound claim can be bound; they are looked for once."""
        candidates = self._candidates.get(meta.uid(claim))
        if candidates is None:
            candidates = self._candidates[meta.uid(claim)] = VolumeCandidates(claim, storage)
        return candidates

    def _existing_binding(
        self, claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage, assigned: set[str]
    ) -> ClaimBinding | str | None:
        """Return the binding to an existing volume; None if a volume has to be provisioned on the node; or a reason."""
        volume = assumed_volume(claim, storage)
        if volume is not None:
            is_usable = is_reachable(volume, node)
            return ClaimBinding(claim, volume, is_written=True) if is_usable else NO_VOLUME
        selected = selected_node(claim, storage)
        if selected is not None:
            return None if selected == meta.name(node) else NO_VOLUME
        volume = self.candidates(claim, storage).best_on(node, assigned)
        if volume is None:
            return None
        names_claim = (volume["spec"].get("claimRef") or {}).get("uid") == meta.uid(claim)
        return ClaimBinding(claim, volume, is_written=names_claim)


class VolumeCandidates:
    """The volumes to which a claim can be bound, by the hosts from which they are reachable."""

    def __init__(self, claim: ReadOnlyTree, storage: Storage) -> None:
        self._claim = claim
        self._by_host: dict[str, list[ReadOnlyTree]] = {}
        """The volumes of single hosts, such as local disks."""
        self.of_many_hosts: list[ReadOnlyTree] = []
        for volume in storage.volumes_for(claim):
            if mismatch_reason(volume, claim) or storage.assumed.has_volume(meta.name(volume)):
                continue
            hosts = required_hostnames(required_affinity(volume))
            if hosts is None:
                self.of_many_hosts.append(volume)
            for host in hosts or ():
                self._by_host.setdefault(host, []).append(volume)

    @property
    def has_hosts(self) -> bool:
        return bool(self._by_host)

    def best_on(self, node: ReadOnlyTree, assigned: Container[str]) -> ReadOnlyTree | None:
        """Return the volume to which the claim is bound on a node; None if a volume has to be provisioned."""
        if not self._by_host and not self.of_many_hosts:
            return None
        of_host = self._by_host.get(meta.labels(node).get(LABEL_HOSTNAME, ""), ())
        reachable = (
            volume
            for volume in (*of_host, *self.of_many_hosts)
            if meta.name(volume) not in assigned and is_reachable(volume, node)
        )
        return best_match(reachable, self._claim)


def assumed_volume(claim: ReadOnlyTree, storage: Storage) -> ReadOnlyTree | None:
    """Return the existing volume to which another pod of a claim has begun to bind it; None if there is none."""
    assumed = storage.assumed.binding_of(claim)
    return None if assumed is None else assumed[1].volume


def selected_node(claim: ReadOnlyTree, storage: Storage) -> str | None:
    """Return the node for which a volume of a claim is being provisioned; None if there is none."""
    assumed = storage.assumed.binding_of(claim)
    return meta.annotations(claim).get(SELECTED_NODE) if assumed is None else assumed[0]


def required_affinity(volume: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the selector of the nodes from which a volume is reachable; None if it is from all."""
    required: ReadOnlyTree | None = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required


def claims_of(pod: PodInfo, storage: Storage) -> PodVolumeClaims | str:
    """Return the claims of a pod, or the reason why no node is feasible."""
    claims = PodVolumeClaims()
    pod_claims = []
    for name, is_ephemeral in claim_names(pod):
        claim = storage.claims.get(pod.view.key.namespace, name)
        problem = _claim_problem(pod, name, claim, is_ephemeral=is_ephemeral)
        if problem:
            return problem
        if claim is not None:
            pod_claims.append(claim)
    for claim in pod_claims:
        if is_bound(claim):
            claims.bound.append(claim)
        elif claim["spec"].get("volumeName") or not waits_for_consumer(class_of(claim, storage)):
            return _UNBOUND
        else:
            claims.unbound.append(claim)
    return claims


def uses_claim_alone(claim: ReadOnlyTree | None) -> bool:
    """Return whether only one pod may use a claim."""
    return claim is not None and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())


def claim_names(pod: PodInfo) -> Iterator[tuple[str, bool]]:
    """Yield the name of the claim of each volume that has one, and whether the volume is ephemeral."""
    for volume in pod.spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif "ephemeral" in volume:
            yield f"{pod.view.key.name}-{volume['name']}", True


def _claim_problem(pod: PodInfo, name: str, claim: ReadOnlyTree | None, *, is_ephemeral: bool) -> str:
    if claim is None and is_ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if is_ephemeral and not meta.is_controlled_by(claim, pod.view.object):
        return f"PVC {meta.namespace(claim)}/{name} was not created for pod {pod.view.key} (pod is not owner)"
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    return f'persistentvolumeclaim "{name}" is being deleted' if meta.is_deleting(claim) else ""


def is_bound(claim: ReadOnlyTree) -> bool:
    return bool(claim["spec"].get("volumeName")) and ANNOTATION_PV_BIND_COMPLETED in meta.annotations(claim)


def class_of(claim: ReadOnlyTree, storage: Storage) -> ReadOnlyTree | None:
    return storage.classes.get("", storage_class_name(claim))


def is_reachable(volume: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    required = required_affinity(volume)
    return required is None or selects(required, node)


def _provision(claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage) -> ClaimBinding | str:
    """Return the binding of a claim for which a volume is provisioned on the node, or why none can be."""
    storage_class = class_of(claim, storage)
    assert storage_class is not None  # it says that the claim waits for its consumer
    if storage_class["provisioner"] == NO_PROVISIONER:
        return NO_VOLUME
    topologies: Sequence[ReadOnlyTree] = storage_class.get("allowedTopologies") or ()
    if topologies and not any(matches_term(_as_term(topology), node) for topology in topologies):
        return NO_VOLUME
    if not _has_capacities(claim, storage_class, storage):
        return ClaimBinding(claim, None)
    size = request(claim)
    for capacity in storage.capacities.all():
        if capacity["storageClassName"] == meta.name(storage_class) and _is_sufficient(capacity, node, size):
            return ClaimBinding(claim, None, capacity=capacity)
    return NO_SPACE


def topology_selectors(claim: ReadOnlyTree, storage: Storage) -> Iterator[ReadOnlyTree]:
    """Yield what selects the nodes on which a volume can be provisioned for a claim: by the class, or by free storage."""
    storage_class = class_of(claim, storage)
    assert storage_class is not None  # as above
    yield from storage_class.get("allowedTopologies") or ()
    if _has_capacities(claim, storage_class, storage):
        for capacity in storage.capacities.all():
            if capacity["storageClassName"] == meta.name(storage_class):
                yield capacity.get("nodeTopology") or {}


def _has_capacities(claim: ReadOnlyTree, storage_class: ReadOnlyTree, storage: Storage) -> bool:
    """Return whether the driver of a class publishes the capacities that the claim needs."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    driver = storage.drivers.get("", storage_class["provisioner"])
    return "storage" in requests and driver is not None and driver["spec"].get("storageCapacity") is True


def _is_sufficient(capacity: ReadOnlyTree, node: ReadOnlyTree, size: Quantity) -> bool:
    """Return whether a capacity is available on a node and has space for a volume."""
    limit = capacity.get("maximumVolumeSize") or capacity.get("capacity")
    if limit is None or quantity.from_json(limit) < size:
        return False
    return from_label_selector(capacity.get("nodeTopology")).matches(meta.labels(node))


def _as_term(topology: ReadOnlyTree) -> ReadOnlyTree:
    expressions = topology.get("matchLabelExpressions") or ()
    return {"matchExpressions": [{**expression, "operator": "In"} for expression in expressions]}

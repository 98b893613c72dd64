"""The claims of a pod, and the volumes to which they can be bound on a node. Pure. Upstream: plugins/volumebinding.

A claim of a class with WaitForFirstConsumer is bound after the pod has a node: the scheduler chooses a node for which there
are volumes, writes the choice, and binds the pod when its claims are bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.labels import from_label_selector
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED
from mockube.controller_manager.cache.store import Lister, Store
from mockube.controller_manager.workloads.indexes import BY_ATTACHED_NODE, node_of_attachment
from mockube.controller_manager.workloads.node_selectors import matches_term, selects
from mockube.controller_manager.workloads.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    best_match,
    request,
    waits_for_consumer,
)

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

    def assume(self, pod_uid: str, node: str, bindings: Iterable[ClaimBinding]) -> None:
        for binding in bindings:
            uid = meta.uid(binding.claim)
            self._claims.setdefault(uid, []).append((node, binding))
            self._pods.setdefault(pod_uid, []).append(uid)

    def forget(self, pod_uid: str) -> None:
        for uid in self._pods.pop(pod_uid, ()):
            self._claims[uid].pop()
            if not self._claims[uid]:
                del self._claims[uid]

    def binding_of(self, claim: ReadOnlyTree) -> tuple[str, ClaimBinding] | None:
        """Return the node for which a claim is being bound, and the binding; None if it is not."""
        assumed = self._claims.get(meta.uid(claim))
        return None if assumed is None else assumed[0]

    def volumes(self) -> set[str]:
        """Return the names of the volumes to which claims are being bound."""
        return {
            meta.name(binding.volume)
            for assumed in self._claims.values()
            for _, binding in assumed
            if binding.volume is not None
        }


def _no_objects() -> Lister[ReadOnlyTree]:
    store: Store[ReadOnlyTree] = Store()
    store.add_index(BY_ATTACHED_NODE, node_of_attachment)
    return store


class Storage(Struct, frozen=True, kw_only=True):
    """The listers of claims, volumes and what storage has, and the bindings in progress."""

    claims: Lister[ReadOnlyTree]
    volumes: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    csi_nodes: Lister[ReadOnlyTree] = field(default_factory=_no_objects)
    drivers: Lister[ReadOnlyTree] = field(default_factory=_no_objects)
    capacities: Lister[ReadOnlyTree] = field(default_factory=_no_objects)
    attachments: Lister[ReadOnlyTree] = field(default_factory=_no_objects)
    """VolumeAttachments, with the index BY_ATTACHED_NODE."""
    assumed: AssumedBindings = field(default_factory=AssumedBindings)


class PodVolumeClaims(Struct):
    bound: list[ReadOnlyTree] = field(default_factory=list)
    """The claims that are bound."""
    unbound: list[ReadOnlyTree] = field(default_factory=list)
    """The claims that are bound after the pod has a node."""

    def __bool__(self) -> bool:
        return bool(self.bound or self.unbound)

    def assign(self, node: ReadOnlyTree, storage: Storage) -> list[ClaimBinding] | str:
        """Return the bindings of the unbound claims on a node, or the reason why one of them cannot be bound there.

        Claims get volumes in the order of their size, so that each gets the smallest that fits.
        """
        bindings: list[ClaimBinding] = []
        assigned = storage.assumed.volumes()
        to_provision: list[ReadOnlyTree] = []
        for claim in sorted(self.unbound, key=request):
            binding = _existing_binding(claim, node, storage, assigned)
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


def _existing_binding(
    claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage, assigned: set[str]
) -> ClaimBinding | str | None:
    """Return the binding to an existing volume; None if a volume has to be provisioned on the node; or a reason."""
    assumed = storage.assumed.binding_of(claim)
    if assumed is not None and assumed[1].volume is not None:
        # Another pod of the claim has begun to bind it.
        assumed_volume = assumed[1].volume
        is_usable = is_reachable(assumed_volume, node)
        return ClaimBinding(claim, assumed_volume, is_written=True) if is_usable else NO_VOLUME
    selected = meta.annotations(claim).get(SELECTED_NODE) if assumed is None else assumed[0]
    if selected is not None:
        return None if selected == meta.name(node) else NO_VOLUME
    reachable = (
        candidate
        for candidate in storage.volumes.all()
        if meta.name(candidate) not in assigned and is_reachable(candidate, node)
    )
    volume = best_match(reachable, claim)
    if volume is None:
        return None
    names_claim = (volume["spec"].get("claimRef") or {}).get("uid") == meta.uid(claim)
    return ClaimBinding(claim, volume, is_written=names_claim)


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
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects(required, node)


def _provision(claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage) -> ClaimBinding | str:
    """Return the binding of a claim for which a volume is provisioned on the node, or why none can be."""
    storage_class = class_of(claim, storage)
    if storage_class is None or storage_class.get("provisioner", NO_PROVISIONER) == NO_PROVISIONER:
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


def _has_capacities(claim: ReadOnlyTree, storage_class: ReadOnlyTree, storage: Storage) -> bool:
    """Return whether the driver of a class publishes the capacities that the claim needs."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    driver = storage.drivers.get("", storage_class["provisioner"])
    return "storage" in requests and driver is not None and driver["spec"].get("storageCapacity") is True


def _is_sufficient(capacity: ReadOnlyTree, node: ReadOnlyTree, size: Quantity) -> bool:
    """Return whether a capacity is available on a node and has space for a volume."""
    limit = capacity.get("maximumVolumeSize") or capacity.get("capacity")
    topology = capacity.get("nodeTopology")
    if limit is None or topology is None or quantity.from_json(limit) < size:
        return False
    return from_label_selector(topology).matches(meta.labels(node))


def _as_term(topology: ReadOnlyTree) -> ReadOnlyTree:
    expressions = topology.get("matchLabelExpressions") or ()
    return {"matchExpressions": [{**expression, "operator": "In"} for expression in expressions]}

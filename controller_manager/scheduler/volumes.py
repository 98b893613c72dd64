"""The claims of a pod, and the volumes to which they can be bound on a node. Pure. Upstream: plugins/volumebinding.

A claim of a class with WaitForFirstConsumer is bound after the pod has a node: the scheduler chooses a node for which there
are volumes, writes the choice, and binds the pod when its claims are bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.node_selectors import matches_term, selects
from mockube.controller_manager.workloads.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    best_match,
    waits_for_consumer,
)

_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"


class ClaimBinding(NamedTuple):
    """A claim and the volume to which it will be bound; None for a volume that is provisioned for the node."""

    claim: ReadOnlyTree
    volume: ReadOnlyTree | None
    is_written: bool = False
    """Whether the volume names the claim already, or another pod of the claim has begun to write that."""


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


class Storage(Struct, frozen=True, kw_only=True):
    """The listers of claims, volumes and storage classes, and the bindings in progress."""

    claims: Lister[ReadOnlyTree]
    volumes: Lister[ReadOnlyTree]
    classes: Lister[ReadOnlyTree]
    assumed: AssumedBindings = field(default_factory=AssumedBindings)


class PodVolumeClaims(Struct):
    """The claims of a pod."""

    volumes: list[ReadOnlyTree] = field(default_factory=list)
    """The volumes of the bound claims."""
    unbound: list[ReadOnlyTree] = field(default_factory=list)
    """The claims that are bound after the pod has a node."""

    def __bool__(self) -> bool:
        return bool(self.volumes or self.unbound)

    def assign(self, node: ReadOnlyTree, storage: Storage) -> list[ClaimBinding] | None:
        """Return the bindings of the unbound claims on a node; None if one of them cannot be bound there."""
        bindings: list[ClaimBinding] = []
        assigned = storage.assumed.volumes()
        for claim in self.unbound:
            binding = _assumed_binding(claim, node, storage) or _new_binding(claim, node, storage, assigned)
            if binding is None:
                return None
            if binding.volume is not None:
                assigned.add(meta.name(binding.volume))
            bindings.append(binding)
        return bindings


def _assumed_binding(claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage) -> ClaimBinding | None:
    """Return the binding to an existing volume that another pod of the claim has begun; None without one for the node."""
    assumed = storage.assumed.binding_of(claim)
    volume = None if assumed is None else assumed[1].volume
    if volume is None or not is_reachable(volume, node):
        return None
    return ClaimBinding(claim, volume, is_written=True)


def _new_binding(
    claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage, assigned: set[str]
) -> ClaimBinding | None:
    assumed = storage.assumed.binding_of(claim)
    if assumed is not None and assumed[1].volume is not None:
        return None  # It is being bound to a volume that the node cannot reach.
    selected = meta.annotations(claim).get(SELECTED_NODE) if assumed is None else assumed[0]
    volume = None
    if selected is None:
        reachable = (
            candidate
            for candidate in storage.volumes.all()
            if meta.name(candidate) not in assigned and is_reachable(candidate, node)
        )
        volume = best_match(reachable, claim)
    elif selected != meta.name(node):
        return None
    if volume is not None:
        names_claim = (volume["spec"].get("claimRef") or {}).get("uid") == meta.uid(claim)
        return ClaimBinding(claim, volume, is_written=names_claim)
    return ClaimBinding(claim, None) if _can_provision(claim, node, storage) else None


def claims_of(pod: PodInfo, storage: Storage) -> PodVolumeClaims | str:
    """Return the claims of a pod, or the reason why no node is feasible."""
    claims = PodVolumeClaims()
    for name, is_ephemeral in _claim_names(pod):
        claim = storage.claims.get(pod.view.key.namespace, name)
        problem = _claim_problem(pod, name, claim, is_ephemeral=is_ephemeral) or _classify(
            claim, claims, storage
        )
        if problem:
            return problem
    return claims


def uses_claim_alone(claim: ReadOnlyTree | None) -> bool:
    """Return whether only one pod may use a claim."""
    return claim is not None and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())


def _claim_names(pod: PodInfo) -> Iterator[tuple[str, bool]]:
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


def _classify(claim: ReadOnlyTree | None, claims: PodVolumeClaims, storage: Storage) -> str:
    if claim is None:
        return ""
    if is_bound(claim):
        volume = storage.volumes.get("", claim["spec"]["volumeName"])
        claims.volumes += [] if volume is None else [volume]
        return "" if volume is not None else f'persistentvolume "{claim["spec"]["volumeName"]}" not found'
    if claim["spec"].get("volumeName") or not waits_for_consumer(_class_of(claim, storage)):
        return _UNBOUND
    claims.unbound.append(claim)
    return ""


def is_bound(claim: ReadOnlyTree) -> bool:
    return bool(claim["spec"].get("volumeName")) and ANNOTATION_PV_BIND_COMPLETED in meta.annotations(claim)


def _class_of(claim: ReadOnlyTree, storage: Storage) -> ReadOnlyTree | None:
    return storage.classes.get("", storage_class_name(claim))


def is_reachable(volume: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects(required, node)


def _can_provision(claim: ReadOnlyTree, node: ReadOnlyTree, storage: Storage) -> bool:
    storage_class = _class_of(claim, storage)
    if storage_class is None or storage_class.get("provisioner", NO_PROVISIONER) == NO_PROVISIONER:
        return False
    topologies: Sequence[ReadOnlyTree] = storage_class.get("allowedTopologies") or ()
    return not topologies or any(matches_term(_as_term(topology), node) for topology in topologies)


def _as_term(topology: ReadOnlyTree) -> ReadOnlyTree:
    expressions = topology.get("matchLabelExpressions") or ()
    return {"matchExpressions": [{**expression, "operator": "In"} for expression in expressions]}

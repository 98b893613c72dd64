"""The expected number of pods of a PodDisruptionBudget: the scale of the controllers that own them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches
from mockube.client.podview import PodView
from mockube.client.resources import Resource


class UnknownScaleError(Exception):
    """The scale of a pod's controller is unknown; the message is upstream's."""


class Scale(NamedTuple):
    """The desired number of pods of one controller."""

    uid: str
    replicas: int


class ExpectedScale(NamedTuple):
    replicas: int
    unmanaged: bool
    """Whether there are pods without a controller, which are not counted."""


def expected_scale(caches: Caches, pods: Iterable[PodView]) -> ExpectedScale:
    """Return the sum of the scales of all controllers of the pods."""
    scales: dict[str, int] = {}
    unmanaged = False
    for pod in pods:
        if not pod.owner_uid:
            unmanaged = True
        elif pod.owner_uid not in scales:
            scales[pod.owner_uid] = 0  # it is read once, even if the scale belongs to another object
            scale = _scale(caches, pod)
            scales[scale.uid] = scale.replicas
    return ExpectedScale(sum(scales.values()), unmanaged)


def _scale(caches: Caches, pod: PodView) -> Scale:
    reference = meta.controller_of(pod.object)
    assert reference is not None  # called only for pods with an owner
    kind = GroupKind(GroupVersion.parse(reference["apiVersion"]).group, reference["kind"])
    if kind in _WITHOUT_SCALE:
        raise UnknownScaleError(f"{_WITHOUT_SCALE[kind]} does not implement the scale subresource")
    find = _FINDERS.get(kind, _find_nothing)
    scale = find(caches, pod.key.namespace, reference)
    if scale is None:
        raise UnknownScaleError(f"found no controllers for pod {gotext.quote(pod.key.name)}")
    return scale


def _find_nothing(_: Caches, __: str, ___: ReadOnlyTree) -> Scale | None:
    return None


def _finder(resource: Resource[ReadOnlyTree]) -> Callable[[Caches, str, ReadOnlyTree], Scale | None]:
    def find(caches: Caches, namespace: str, reference: ReadOnlyTree) -> Scale | None:
        owner = _find_owner(caches, resource, namespace, reference)
        return None if owner is None else _scale_of(owner)

    return find


def _find_replica_set(caches: Caches, namespace: str, reference: ReadOnlyTree) -> Scale | None:
    """Return the scale of a ReplicaSet, or that of its Deployment if it has one."""
    replica_set = _find_owner(caches, kinds.REPLICA_SETS, namespace, reference)
    if replica_set is None:
        return None
    owner = meta.controller_of(replica_set) or {}
    has_deployment = owner.get("kind") == kinds.DEPLOYMENTS.kind
    deployment = _find_owner(caches, kinds.DEPLOYMENTS, namespace, owner) if has_deployment else None
    return _scale_of(deployment or replica_set)


def _find_owner(
    caches: Caches, resource: Resource[ReadOnlyTree], namespace: str, reference: ReadOnlyTree
) -> ReadOnlyTree | None:
    owner = caches.of(resource).get(namespace, reference["name"])
    return owner if owner is not None and meta.uid(owner) == reference["uid"] else None


def _scale_of(owner: ReadOnlyTree) -> Scale:
    replicas = owner["spec"].get("replicas")
    return Scale(meta.uid(owner), 1 if replicas is None else replicas)


_FINDERS: Final[Mapping[GroupKind, Callable[[Caches, str, ReadOnlyTree], Scale | None]]] = {
    kinds.REPLICATION_CONTROLLERS.group_kind: _finder(kinds.REPLICATION_CONTROLLERS),
    kinds.STATEFUL_SETS.group_kind: _finder(kinds.STATEFUL_SETS),
    kinds.REPLICA_SETS.group_kind: _find_replica_set,
}

_WITHOUT_SCALE: Final = {
    resource.group_kind: resource.group_resource for resource in (kinds.DAEMON_SETS, kinds.JOBS, kinds.NODES)
}

OWNERS_WITH_SCALE: Final = (
    kinds.REPLICATION_CONTROLLERS,
    kinds.REPLICA_SETS,
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
)
"""The resources that have to be in the caches."""

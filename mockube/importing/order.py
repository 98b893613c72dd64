"""The order in which objects are created: first what others need, and dependents before their owners.

A ReplicaSet adopts pods that exist when it is created, and otherwise creates new pods. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import ReadOnlyTree

from . import cleaning

NEEDED_KINDS: Final = (
    GroupKind("", "ServiceAccount"),
    GroupKind("node.k8s.io", "RuntimeClass"),
    GroupKind("scheduling.k8s.io", "PriorityClass"),
    GroupKind("storage.k8s.io", "StorageClass"),
)
"""Kinds whose objects others name and need when they are created."""
RANK_BY_KIND: Final[Mapping[GroupKind, int]] = {
    cleaning.NAMESPACE: 0,
    cleaning.DEFINITION: 1,
    **dict.fromkeys((cleaning.NODE, *NEEDED_KINDS), 2),
    **dict.fromkeys(
        (GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("", "PersistentVolume")), 3
    ),
    GroupKind("", "PersistentVolumeClaim"): 4,
    **dict.fromkeys(
        (
            GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
            GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
            GroupKind("apiregistration.k8s.io", "APIService"),
        ),
        6,
    ),
}
"""Kinds that others need have a low rank; kinds that affect all requests, such as webhooks, have the highest."""
DEFAULT_RANK: Final = 5


def concurrent_batches(trees: Sequence[ReadOnlyTree]) -> Iterator[Sequence[int]]:
    """Yield the positions of objects that can be created concurrently, one batch after another."""
    depths = _owner_depths(trees)

    def batch_of(index: int) -> tuple[int, int]:
        rank = RANK_BY_KIND.get(cleaning.kind_of(trees[index]), DEFAULT_RANK)
        return rank, depths[index] if rank == DEFAULT_RANK else 0

    for _, positions in groupby(sorted(range(len(trees)), key=batch_of), key=batch_of):
        yield [*positions]


def _owner_depths(trees: Sequence[ReadOnlyTree]) -> Sequence[int]:
    """Return how many generations of dependents each object has among the objects."""
    position_by_uid = {meta.uid(tree): position for position, tree in enumerate(trees) if meta.uid(tree)}
    depths = [0] * len(trees)
    for position in range(len(trees)):
        _deepen_owners(trees, position_by_uid, depths, position)
    return depths


def _deepen_owners(
    trees: Sequence[ReadOnlyTree], position_by_uid: Mapping[str, int], depths: list[int], position: int
) -> None:
    """Increase the depths of an object's owners; the number of objects is the limit, for owners in a cycle."""
    pending = [position]
    while pending:
        current = pending.pop()
        for reference in meta.owner_references(trees[current]):
            owner = position_by_uid.get(reference.get("uid", ""))
            if owner is not None and depths[owner] <= depths[current] < len(trees):
                depths[owner] = depths[current] + 1
                pending.append(owner)

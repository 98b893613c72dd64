"""The order in which objects can be created, so that nothing they need is missing, and controllers find what they own.

Dependents are created before their owner: a ReplicaSet adopts pods that exist, and without them creates others. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.importing.cleaning import DEFINITION, NAMESPACE, NODE, kind_of

RANKS: Final[Mapping[GroupKind, int]] = {
    NAMESPACE: 0,
    DEFINITION: 1,
    **dict.fromkeys(
        (
            NODE,
            GroupKind("", "ServiceAccount"),
            GroupKind("node.k8s.io", "RuntimeClass"),
            GroupKind("scheduling.k8s.io", "PriorityClass"),
            GroupKind("storage.k8s.io", "StorageClass"),
        ),
        2,
    ),
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
"""What others need is created first, and last what would affect all others."""
OTHERS: Final = 5


def concurrent_batches(trees: Sequence[ReadOnlyTree]) -> Iterator[Sequence[int]]:
    """Positions of objects that can be made at the same time, one wave after another."""
    heights = _owner_depths(trees)

    def batch_of(index: int) -> tuple[int, int]:
        rank = RANKS.get(kind_of(trees[index]), OTHERS)
        return rank, heights[index] if rank == OTHERS else 0

    for _, positions in groupby(sorted(range(len(trees)), key=batch_of), key=batch_of):
        yield [*positions]


def _owner_depths(trees: Sequence[ReadOnlyTree]) -> Sequence[int]:
    """How many generations of owned objects each has below it, of those that are here."""
    position_by_uid = {meta.uid(tree): position for position, tree in enumerate(trees) if meta.uid(tree)}
    heights = [0] * len(trees)
    for position in range(len(trees)):
        _raise_owners(trees, position_by_uid, heights, position)
    return heights


def _raise_owners(
    trees: Sequence[ReadOnlyTree], position_by_uid: Mapping[str, int], heights: list[int], position: int
) -> None:
    """Owners in a circle are raised no higher than there are objects."""
    above = [position]
    while above:
        current = above.pop()
        for reference in meta.owner_references(trees[current]):
            owner = position_by_uid.get(reference.get("uid", ""))
            if owner is not None and heights[owner] <= heights[current] < len(trees):
                heights[owner] = heights[current] + 1
                above.append(owner)

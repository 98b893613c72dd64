"""What the garbage collector reads of an object: who it is, whom it names as its owners, and how it is being deleted.

Pure.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from apimachinery import meta
from apimachinery.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from controller_manager.runtime.resource import Key, Tree


class OwnerReference(NamedTuple):
    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """`blockOwnerDeletion`: the owner waits for this dependent when it is deleted in the foreground."""

    def described(self, namespace: str) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {namespace}, name: {self.name}, uid: {self.uid}]"


class Identity(NamedTuple):
    """Which object: by its uid alone; the rest says where to ask for it."""

    api_version: str
    kind: str
    key: Key
    uid: str


def owners_of(obj: Tree) -> tuple[OwnerReference, ...]:
    return tuple(map(_owner, meta.owner_references(obj)))


def _owner(reference: Tree) -> OwnerReference:
    return OwnerReference(
        api_version=reference.get("apiVersion", ""),
        kind=reference.get("kind", ""),
        name=reference.get("name", ""),
        uid=reference.get("uid", ""),
        blocks=reference.get("blockOwnerDeletion") is True,
    )


def waits_for_dependents(obj: Tree) -> bool:
    """It is being deleted in the foreground."""
    return meta.is_deleting(obj) and FINALIZER_FOREGROUND in meta.finalizers(obj)


def waits_for_orphans(obj: Tree) -> bool:
    """It is being deleted, and its dependents are to be let go first."""
    return meta.is_deleting(obj) and FINALIZER_ORPHAN in meta.finalizers(obj)


def without_finalizer_patch(obj: Tree, finalizer: str) -> dict[str, Any]:
    """A merge patch that holds for this version of the object only."""
    left = [other for other in meta.finalizers(obj) if other != finalizer]
    return {"metadata": {"resourceVersion": meta.resource_version(obj), "finalizers": left}}


def with_owners_patch(obj: Tree, kept: Sequence[Tree]) -> dict[str, Any]:
    """A merge patch that leaves these owners, for this version of this object only."""
    return {
        "metadata": {
            "resourceVersion": meta.resource_version(obj),
            "uid": meta.uid(obj),
            "ownerReferences": list(kept),
        }
    }

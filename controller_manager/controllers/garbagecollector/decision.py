"""The decision whether to delete an object, by the states of its owners."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN

from .references import with_owners_patch


class OwnerState(Enum):
    """The state of an owner, as its dependent refers to it."""

    SOLID = auto()
    """It exists, and does not wait for its dependents."""
    DANGLING = auto()
    """It does not exist, or another object has its name."""
    WAITING = auto()
    """It is being deleted in the foreground, and waits for its dependents."""


class Keep(Struct, frozen=True):
    """Do not change the object."""


class Disown(Struct, frozen=True):
    """Remove the references to absent and waiting owners from the object."""

    patch: Mapping[str, Any]


class Remove(Struct, frozen=True, kw_only=True):
    """Delete the object."""

    propagation: Literal["Background", "Foreground", "Orphan"]
    unblock: bool = False
    """Whether to set `blockOwnerDeletion` to false first: the object and its owner would wait for each other."""


Decision = Keep | Disown | Remove


def decide(
    obj: ReadOnlyTree, owner_states: Sequence[OwnerState], *, has_dependents: bool, is_in_cycle: bool
) -> Decision:
    """Return the decision about an object; `owner_states` are in the order of its owner references."""
    if not owner_states:
        return Keep()
    if OwnerState.SOLID in owner_states:
        return _keep_or_disown(obj, owner_states)
    if OwnerState.WAITING in owner_states and has_dependents:
        return Remove(propagation="Foreground", unblock=is_in_cycle)
    return Remove(propagation=_requested_propagation(obj))


def _keep_or_disown(obj: ReadOnlyTree, owner_states: Sequence[OwnerState]) -> Decision:
    paired = zip(meta.owner_references(obj), owner_states, strict=True)
    solid = [reference for reference, owner_state in paired if owner_state is OwnerState.SOLID]
    return Keep() if len(solid) == len(owner_states) else Disown(with_owners_patch(obj, solid))


def _requested_propagation(obj: ReadOnlyTree) -> Literal["Background", "Foreground", "Orphan"]:
    """Return the propagation policy that the object's finalizers request."""
    if FINALIZER_ORPHAN in meta.finalizers(obj):
        return "Orphan"
    return "Foreground" if FINALIZER_FOREGROUND in meta.finalizers(obj) else "Background"


def unblocked_owners(obj: ReadOnlyTree) -> list[dict[str, Any]]:
    """Return the object's owner references, with `blockOwnerDeletion` set to false."""
    return [
        {**reference, "blockOwnerDeletion": False} if "blockOwnerDeletion" in reference else dict(reference)
        for reference in meta.owner_references(obj)
    ]

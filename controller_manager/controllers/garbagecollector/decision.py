"""The decision about an object, by the state of its owners. Pure."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from mockube.controller_manager.controllers.garbagecollector.references import with_owners_patch


class OwnerState(Enum):
    """What an owner is to its dependent."""

    SOLID = auto()
    """It is there."""
    DANGLING = auto()
    """It is not, or another has its name."""
    WAITING = auto()
    """It is being deleted and waits for its dependents."""


class Keep(Struct, frozen=True):
    """Leave the object as it is."""


class Disown(Struct, frozen=True):
    """Keep it, without the references to deleted or terminating owners."""

    patch: Mapping[str, Any]


class Remove(Struct, frozen=True, kw_only=True):
    propagation: Literal["Background", "Foreground", "Orphan"]
    unblock: bool = False
    """First make it block no owner: it and its owner would wait for each other."""


Decision = Keep | Disown | Remove


def decide(
    obj: ReadOnlyTree, owner_states: Sequence[OwnerState], *, has_dependents: bool, is_in_circle: bool
) -> Decision:
    """`owner_states` are those of the object's owners, in their order."""
    if not owner_states:
        return Keep()
    if OwnerState.SOLID in owner_states:
        return _keep_or_disown(obj, owner_states)
    if OwnerState.WAITING in owner_states and has_dependents:
        return Remove(propagation="Foreground", unblock=is_in_circle)
    return Remove(propagation=_asked_for(obj))


def _keep_or_disown(obj: ReadOnlyTree, owner_states: Sequence[OwnerState]) -> Decision:
    paired = zip(meta.owner_references(obj), owner_states, strict=True)
    solid = [reference for reference, owner_state in paired if owner_state is OwnerState.SOLID]
    return Keep() if len(solid) == len(owner_states) else Disown(with_owners_patch(obj, solid))


def _asked_for(obj: ReadOnlyTree) -> Literal["Background", "Foreground", "Orphan"]:
    """The propagation policy of the object's own deletion, by its finalizers."""
    if FINALIZER_ORPHAN in meta.finalizers(obj):
        return "Orphan"
    return "Foreground" if FINALIZER_FOREGROUND in meta.finalizers(obj) else "Background"


def unblocked_owners(obj: ReadOnlyTree) -> list[dict[str, Any]]:
    """Return its owner references, of which none blocks its owner."""
    return [
        {**reference, "blockOwnerDeletion": False} if "blockOwnerDeletion" in reference else dict(reference)
        for reference in meta.owner_references(obj)
    ]

"""Ownership: the objects that an owner has, those that it adopts, and those that it releases, as controller ref managers.

Pure. An object belongs to the owner that its controller reference names. The owner releases it if its selector does not
match, and adopts orphans that match.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import Selector, SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource, T
from mockube.controller_manager.control.actions import Action, Adopt, ObjectRef, Release
from mockube.controller_manager.control.controller import ToKeys

BY_OWNER: Final = "owner"
"""The index of objects by the uid of their controller; orphans have the value `orphans_of(namespace)`."""


def orphans_of(namespace: str) -> str:
    return f"orphans/{namespace}"


def owner_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.owner_uid or orphans_of(pod.key.namespace),)


def owner_of(obj: ReadOnlyTree) -> Iterable[str]:
    controller = meta.controller_of(obj)
    return (controller["uid"] if controller else orphans_of(meta.namespace(obj)),)


def selector_of(owner: ReadOnlyTree) -> Selector:
    """Return the selector in the spec of an owner; raise `SelectorError` if it is invalid."""
    return labels.from_label_selector(owner["spec"].get("selector"))


class OwnedObjects(Struct, Generic[T], frozen=True, kw_only=True):
    """The objects of an owner, and those whose ownership must change."""

    owned: tuple[T, ...]
    orphans: tuple[T, ...]
    """The orphans that the selector matches: to be adopted."""
    to_release: tuple[T, ...]
    """The owned objects that the selector no longer matches."""


def owned_objects(
    caches: Caches, resource: Resource[T], owner: ReadOnlyTree, selector: Selector
) -> OwnedObjects[T]:
    """Return the objects of an owner.

    An owner that is being deleted adopts and releases nothing, because the garbage collector handles its objects.
    """
    lister = caches.of(resource)
    owned: list[T] = []
    to_release: list[T] = []
    for view in lister.by_index(BY_OWNER, meta.uid(owner)):
        fits = selector.matches(meta.labels(resource.tree(view)))
        (owned if fits else to_release).append(view)
    if meta.is_deleting(owner):
        return OwnedObjects(owned=tuple(owned), orphans=(), to_release=())
    orphans = tuple(matching_orphans(caches, resource, owner, selector))
    return OwnedObjects(owned=tuple(owned), orphans=orphans, to_release=tuple(to_release))


def matching_orphans(
    caches: Caches, resource: Resource[T], owner: ReadOnlyTree, selector: Selector
) -> Iterable[T]:
    """Return the objects without an owner that an owner adopts."""
    unowned = caches.of(resource).by_index(BY_OWNER, orphans_of(meta.namespace(owner)))
    return (view for view in unowned if _is_adoptable(resource.tree(view), selector))


def _is_adoptable(obj: ReadOnlyTree, selector: Selector) -> bool:
    return not meta.is_deleting(obj) and selector.matches(meta.labels(obj))


def adoption_and_release_actions(
    objects: OwnedObjects[T],
    resource: Resource[T],
    owner: ReadOnlyTree,
    owner_resource: Resource[Any],
    *,
    finalizers: tuple[str, ...] = (),
) -> tuple[Action, ...]:
    """Return the actions that adopt and release objects, and add or remove these finalizers; none if nothing changes."""
    actions: list[Action] = []
    if objects.to_release:
        to_release = tuple(object_ref(resource, view) for view in objects.to_release)
        actions.append(Release(resource=resource, objects=to_release, owner=owner, finalizers=finalizers))
    if objects.orphans:
        orphans = tuple(object_ref(resource, view) for view in objects.orphans)
        adopt = Adopt(
            resource=resource,
            orphans=orphans,
            owner_resource=owner_resource,
            owner=owner,
            finalizers=finalizers,
        )
        actions.append(adopt)
    return tuple(actions)


def object_ref(resource: Resource[T], view: T) -> ObjectRef:
    obj = resource.tree(view)
    return ObjectRef.of(obj)


# --- mapping of changes to owners


def keys_of_owners(
    resource: Resource[Any], owner_resource: Resource[Any], to_selector: Callable[[ReadOnlyTree], Selector]
) -> ToKeys:
    """Return the mapping of a change to the keys of the current and the previous owner, and of those that may adopt it."""

    def keys(caches: Caches, change: Change) -> Iterable[Key]:
        versions = [resource.tree(view) for view in change if view is not None]
        owner_keys = {key for obj in versions for key in _owner_keys(caches, owner_resource, obj)}
        return owner_keys | {
            key for obj in versions if _may_be_adopted(obj, versions) for key in matching_owners(caches, obj)
        }

    def matching_owners(caches: Caches, orphan: ReadOnlyTree) -> Iterable[Key]:
        for owner in caches.of(owner_resource).in_namespace(meta.namespace(orphan)):
            if _selects(to_selector, owner, orphan):
                yield Key.of(owner)

    return keys


def _owner_keys(caches: Caches, owner_resource: Resource[Any], obj: ReadOnlyTree) -> Iterable[Key]:
    reference = meta.controller_of(obj)
    if reference is None or reference["kind"] != owner_resource.kind:
        return
    owner = caches.of(owner_resource).get(meta.namespace(obj), reference["name"])
    if owner is not None and meta.uid(owner) == reference["uid"]:
        yield Key.of(owner)


def _may_be_adopted(obj: ReadOnlyTree, versions: list[ReadOnlyTree]) -> bool:
    """Return whether an object is an orphan whose change affects owners that may adopt it.

    It was added, its labels or controller changed, or it was deleted: an owner may have been about to adopt it.
    """
    if meta.controller_of(obj) is not None:
        return False
    return len(versions) == 1 or any(
        meta.labels(obj) != meta.labels(other) or meta.controller_of(other) is not None for other in versions
    )


def _selects(
    to_selector: Callable[[ReadOnlyTree], Selector], owner: ReadOnlyTree, orphan: ReadOnlyTree
) -> bool:
    try:
        return to_selector(owner).matches(meta.labels(orphan))
    except SelectorError:
        return False  # no server accepts such a selector

"""Ownership: the objects that an owner has, those it may adopt, and those it must release.

Pure, and the same for every owner that selects by labels. An object belongs to the one owner that its controller
reference names; the selector decides whether an owner releases its object, and adopts an orphan.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.labels import Selector, SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key, Resource, T
from mockube.controller_manager.control.actions import Action, Adopt, ObjectRef, Release
from mockube.controller_manager.control.controller import ToKeys

BY_OWNER: Final = "owner"
"""The index of objects by the uid of their controller; those without one are found by `orphans_of` their namespace."""


def orphans_of(namespace: str) -> str:
    return f"orphans/{namespace}"


def owner_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.owner_uid or orphans_of(pod.key.namespace),)


def owner_of(obj: ReadOnlyTree) -> Iterable[str]:
    controller = meta.controller_of(obj)
    return (controller["uid"] if controller else orphans_of(meta.namespace(obj)),)


class OwnedObjects(Struct, Generic[T], frozen=True, kw_only=True):
    owned: tuple[T, ...]
    orphans: tuple[T, ...]
    """Orphans that are selected: to be adopted."""
    strays: tuple[T, ...]
    """Owned, and no longer selected: to be released."""


def owned_objects(
    caches: Caches, resource: Resource[T], owner: ReadOnlyTree, selector: Selector
) -> OwnedObjects[T]:
    """An owner that is being deleted adopts nothing and releases nothing: the garbage collector does that."""
    lister = caches.of(resource)
    owned: list[T] = []
    strays: list[T] = []
    for view in lister.by_index(BY_OWNER, meta.uid(owner)):
        fits = selector.matches(meta.labels(resource.tree(view)))
        (owned if fits else strays).append(view)
    if meta.is_deleting(owner):
        return OwnedObjects(owned=tuple(owned), orphans=(), strays=())
    unowned = lister.by_index(BY_OWNER, orphans_of(meta.namespace(owner)))
    orphans = (view for view in unowned if _is_adoptable(resource.tree(view), selector))
    return OwnedObjects(owned=tuple(owned), orphans=tuple(orphans), strays=tuple(strays))


def _is_adoptable(obj: ReadOnlyTree, selector: Selector) -> bool:
    return not meta.is_deleting(obj) and selector.matches(meta.labels(obj))


def adoption_and_release_actions(
    claims: OwnedObjects[T],
    resource: Resource[T],
    owner: ReadOnlyTree,
    owner_resource: Resource[Any],
    *,
    finalizers: tuple[str, ...] = (),
) -> tuple[Action, ...]:
    """Return the actions that adopt and release; none if ownership is right. Finalizers are added and removed with it."""
    actions: list[Action] = []
    if claims.strays:
        strays = tuple(object_ref(resource, view) for view in claims.strays)
        actions.append(Release(resource=resource, objects=strays, owner=owner, finalizers=finalizers))
    if claims.orphans:
        orphans = tuple(object_ref(resource, view) for view in claims.orphans)
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


# --- which owners a change concerns


def keys_of_owners(
    resource: Resource[Any], owner_resource: Resource[Any], selector_of: Callable[[ReadOnlyTree], Selector]
) -> ToKeys:
    """For changes of the resource: the owner that has the object, the one that had it, and those that may adopt it."""

    def keys(caches: Caches, change: Change) -> Iterable[Key]:
        seen = [resource.tree(view) for view in change if view is not None]
        owned = {key for obj in seen for key in _owner(caches, owner_resource, obj)}
        return owned | {key for obj in seen if _is_news(obj, seen) for key in matching_owners(caches, obj)}

    def matching_owners(caches: Caches, orphan: ReadOnlyTree) -> Iterable[Key]:
        for owner in caches.of(owner_resource).in_namespace(meta.namespace(orphan)):
            if _selects(selector_of, owner, orphan):
                yield Key.of(owner)

    return keys


def _owner(caches: Caches, owner_resource: Resource[Any], obj: ReadOnlyTree) -> Iterable[Key]:
    reference = meta.controller_of(obj)
    if reference is None or reference["kind"] != owner_resource.kind:
        return
    owner = caches.of(owner_resource).get(meta.namespace(obj), reference["name"])
    if owner is not None and meta.uid(owner) == reference["uid"]:
        yield Key.of(owner)


def _is_news(obj: ReadOnlyTree, seen: list[ReadOnlyTree]) -> bool:
    """An orphan that was added, deleted, or changed in what adoption depends on. A deleted one may have been counted
    on.
    """
    if meta.controller_of(obj) is not None:
        return False
    return len(seen) == 1 or any(
        meta.labels(obj) != meta.labels(other) or meta.controller_of(other) is not None for other in seen
    )


def _selects(
    selector_of: Callable[[ReadOnlyTree], Selector], owner: ReadOnlyTree, orphan: ReadOnlyTree
) -> bool:
    try:
        return selector_of(owner).matches(meta.labels(orphan))
    except SelectorError:
        return False  # no server accepts such a selector

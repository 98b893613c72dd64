"""The watches of the objects that a controller is about: what somebody wishes of them is looked at at once.

What their status tells is mostly the controller's own telling, and waits for whatever else there is to see.
"""

from collections.abc import Iterable
from datetime import timedelta

from apimachinery import meta
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import Watch
from controller_manager.runtime.resource import Key, Resource, Tree


def watches_of(
    resource: Resource[Tree], *, patience: timedelta, longest: timedelta = timedelta()
) -> tuple[Watch, Watch]:
    """`patience` and `longest` are for changes of the status."""
    return (
        Watch(resource=resource, keys=_of_wish),
        Watch(resource=resource, keys=_of_status, patience=patience, longest=longest),
    )


def _of_wish(_: Caches, change: Change) -> Iterable[Key]:
    return () if _is_of_status(change) else (Key.of(change.latest),)


def _of_status(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.latest),) if _is_of_status(change) else ()


def _is_of_status(change: Change) -> bool:
    if change.old is None or change.new is None:
        return False
    old, new = ({**meta.metadata(it), "resourceVersion": ""} for it in (change.old, change.new))
    return old == new

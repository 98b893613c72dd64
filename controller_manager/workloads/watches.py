"""The watches of a primary resource, which tell changes of its spec from those of its status."""

from collections.abc import Iterable
from datetime import timedelta

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.controller import Watch


def watches_of(
    resource: Resource[ReadOnlyTree],
    *,
    delay: timedelta,
    pause: timedelta = timedelta(),
    max_delay: timedelta = timedelta(),
) -> tuple[Watch, Watch]:
    """Return the watches of a controller's primary resource; the delays apply to changes of the status."""
    return (
        Watch(resource=resource, keys=_keys_of_spec_changes),
        Watch(resource=resource, keys=_keys_of_status_changes, delay=delay, pause=pause, max_delay=max_delay),
    )


def _keys_of_spec_changes(_: Caches, change: Change) -> Iterable[Key]:
    return () if _is_status_change(change) else (Key.of(change.last_known),)


def _keys_of_status_changes(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.last_known),) if _is_status_change(change) else ()


def _is_status_change(change: Change) -> bool:
    if change.old is None or change.new is None:
        return False
    old, new = ({**meta.metadata(obj), "resourceVersion": ""} for obj in (change.old, change.new))
    return old == new

"""The managers, and the object, after an update or an apply."""

from msgspec import Struct

from mockube.apimachinery.patch.apply.compare import equal
from mockube.apimachinery.patch.apply.fieldset import (
    EMPTY,
    difference,
    intersection,
    recursive_difference,
    union,
)
from mockube.apimachinery.patch.apply.managers import Managed, Manager, OwnedFields
from mockube.apimachinery.patch.apply.merge import merge
from mockube.apimachinery.patch.apply.ownership import NEVER_OWNED, Json, Versions, known_managers, settle
from mockube.apimachinery.patch.apply.places import applied_fields
from mockube.apimachinery.patch.apply.prune import prune


class Write(Struct, frozen=True, kw_only=True):
    """The manager of a write, and its time."""

    owner: Manager
    time: str | None
    force: bool = True


def update(
    versions: Versions, managed: Managed, before: Json, after: Json, write: Write
) -> dict[Manager, OwnedFields]:
    """Return the managers after a write: the writer owns the fields it changed, beside those it had."""
    rest, change = settle(
        versions, known_managers(versions, managed, before), before, after, taker=write.owner, force=True
    )
    new_fields = difference(change.changed_fields, NEVER_OWNED)
    own = rest.pop(write.owner, OwnedFields(EMPTY, versions.own))
    lost = difference(intersection(own.fields, change.changed_fields), new_fields)
    own = own.with_fields(union(difference(difference(own.fields, change.removed), lost), new_fields))
    if own.fields:
        rest[write.owner] = own._replace(time=write.time) if new_fields else own
    return rest


def apply(
    versions: Versions, managed: Managed, live: Json, config: Json, write: Write
) -> tuple[Json, dict[Manager, OwnedFields]]:
    """The object and its managers after a configuration was applied.

    What the applier applied last time and no longer does is removed, unless it has another owner. `Conflicts` if what
    would change has another owner, and it is not forced. An object that does not change is the very same.
    """
    managed = known_managers(versions, managed, live)
    last = managed.get(write.owner, OwnedFields(EMPTY, versions.own))
    claimed = applied_fields(versions.atoms[versions.own], config)
    claimed = recursive_difference(claimed, versions.reset_fields.get(versions.own, EMPTY))
    managed[write.owner] = OwnedFields(claimed, versions.own)
    new = prune(versions, merge(versions.atoms[versions.own], live, config), managed, last)
    managed, _ = settle(versions, managed, live, new, taker=write.owner, force=write.force)
    changed = not equal(live, new)
    own = managed.pop(write.owner, last)
    fields = difference(own.fields, NEVER_OWNED)
    if fields:
        # An entry with the same fields as last time is not encoded again.
        own = last.with_fields(last.fields if fields == last.fields else fields)
        time = write.time if changed else last.time
        managed[write.owner] = own._replace(api_version=versions.own, time=time)
    return new if changed else live, managed

"""Update and apply: the managers and the object after each, without the fields that an applier stopped to apply."""

from typing import Any

from msgspec import Struct

from mockube.apimachinery.patch.apply.compare import equal
from mockube.apimachinery.patch.apply.conflicts import known_managers, remove_from_others
from mockube.apimachinery.patch.apply.fieldset import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    recursive_difference,
    union,
    union_of,
)
from mockube.apimachinery.patch.apply.managers import (
    NEVER_OWNED,
    Json,
    Managed,
    Manager,
    OwnedFields,
    Versions,
)
from mockube.apimachinery.patch.apply.merge import merge
from mockube.apimachinery.patch.apply.places import applied_fields, remove, with_fields


class Write(Struct, frozen=True, kw_only=True):
    """The manager of a write, and its time."""

    owner: Manager
    time: str | None
    force: bool = True


def update(
    versions: Versions, managed: Managed, before: Json, after: Json, write: Write
) -> dict[Manager, OwnedFields]:
    """Return the managers after a write: the writer owns the fields it changed, beside those it had."""
    rest, change = remove_from_others(
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
    new = _prune(versions, merge(versions.atoms[versions.own], live, config), managed, last)
    managed, _ = remove_from_others(versions, managed, live, new, taker=write.owner, force=write.force)
    changed = not equal(live, new)
    own = managed.pop(write.owner, last)
    fields = difference(own.fields, NEVER_OWNED)
    if fields:
        # An entry with the same fields as last time is not encoded again.
        own = last.with_fields(last.fields if fields == last.fields else fields)
        time = write.time if changed else last.time
        managed[write.owner] = own._replace(api_version=versions.own, time=time)
    return new if changed else live, managed


# --- fields that the applier no longer applies


def _prune(versions: Versions, merged: Json, managed: Managed, last: OwnedFields) -> Json:
    """Return the object without the fields that the applier owned last time and that no manager owns now.

    `managed` has the applier with what it owns now. Fields below a removed object or item are restored if a manager
    owns them, or if the applier did not own them either.
    """
    owned = _fields_by_version(managed)
    if not difference(last.fields, owned.get(last.api_version, EMPTY)):
        return merged
    atom = versions.atoms[last.api_version]
    refusal = "failed to prune fields: failed to convert merged object to last applied version: {}"
    full_object = versions.to_version(last.api_version, merged, refusal)
    owned_last = with_fields(atom, last.fields)
    pruned = remove(atom, full_object, owned_last)
    # The version of last time comes first: fields of other managers may be needed to convert the object.
    for version in sorted(owned, key=lambda version: version != last.api_version):
        pruned = _with_owned(versions, version, full_object, pruned, owned[version])
    pruned_fields = difference(
        _places(versions, last.api_version, full_object), _places(versions, last.api_version, pruned)
    )
    return versions.to_version(
        versions.own, remove(atom, full_object, intersection(pruned_fields, owned_last))
    )


def _fields_by_version(managed: Managed) -> dict[str, FieldSet]:
    """All owned fields, by API version."""
    owned: dict[str, list[FieldSet]] = {}
    for entry in managed.values():
        owned.setdefault(entry.api_version, []).append(entry.fields)
    return {version: union_of(sets) for version, sets in owned.items()}


def _with_owned(versions: Versions, version: str, full_object: Json, pruned: Json, owned: FieldSet) -> Any:
    """Return the pruned object with the removed fields that a manager owns."""
    atom = versions.atoms[version]
    retained_fields = union(_places(versions, version, pruned), with_fields(atom, owned))
    return remove(
        atom,
        versions.to_version(version, full_object),
        difference(_places(versions, version, full_object), retained_fields),
    )


def _places(versions: Versions, version: str, value: Json) -> FieldSet:
    atom = versions.atoms[version]
    return with_fields(atom, applied_fields(atom, versions.to_version(version, value)))

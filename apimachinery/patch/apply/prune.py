"""Removing the fields that an applier has stopped to apply."""

from typing import Any

from mockube.apimachinery.patch.apply.fieldset import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    union,
    union_of,
)
from mockube.apimachinery.patch.apply.managers import Managed, OwnedFields
from mockube.apimachinery.patch.apply.ownership import Json, Versions
from mockube.apimachinery.patch.apply.places import applied_fields, remove, with_fields


def prune(versions: Versions, merged: Json, managed: Managed, last: OwnedFields) -> Json:
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
    """By API version, what has an owner."""
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

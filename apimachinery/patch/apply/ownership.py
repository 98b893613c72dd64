"""How ownership passes from one manager to another when an object changes.

A manager that changes a place takes it from all others; a removed place has no owner. Managers own fields in the API
version of their requests, so an object is compared in each of these versions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.patch.apply.atoms import Atom, TypedError
from mockube.apimachinery.patch.apply.compare import Comparison, compare
from mockube.apimachinery.patch.apply.conflicts import Conflict, Conflicts
from mockube.apimachinery.patch.apply.fieldset import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    of_fields,
    paths,
)
from mockube.apimachinery.patch.apply.managers import Managed, Manager, OwnedFields
from mockube.apimachinery.patch.apply.reconcile import reconcile_owned_fields
from mockube.apimachinery.patch.apply.validate import validate

Json: TypeAlias = Mapping[str, Any]

NEVER_OWNED: Final = of_fields(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
"""Fields of every object, and the server's own: no manager can own them."""


def with_api_version(value: Json, version: str) -> Json:
    """An object in another version, where versions differ in their names only."""
    return {**value, "apiVersion": version}


class Unconvertible(ValueError):
    """An object cannot be converted to the version of a manager."""


class Versions(Struct, frozen=True, kw_only=True):
    """A resource in the API versions that there are; `own` is the one of the request."""

    own: str
    atoms: Mapping[str, Atom]
    convert: Callable[[Json, str], Json] = with_api_version
    """An object in another of the versions."""
    reset_fields: Mapping[str, FieldSet] = field(default_factory=dict)
    """By version, what requests of this kind cannot change, and so never own: the status, or all but the status."""

    unknown_version: str = ""
    """The error for a manager with fields of another version; if it is empty, that manager is dropped."""

    def to_version(self, version: str, value: Json, refusal: str = "{}") -> Json:
        """An object in a version; `Unconvertible`, in the words of a refusal, if it is none of that version's type."""
        if version == value.get("apiVersion", self.own):
            return value
        try:
            converted = self.convert(value, version)
            validate(self.atoms[version], converted)
        except (Unconvertible, TypedError) as error:
            raise Unconvertible(refusal.format(error)) from error
        return converted

    def compare(self, version: str, before: Json, after: Json) -> Comparison:
        old = self.to_version(version, before, "failed to convert old object: {}")
        new = self.to_version(version, after, "failed to convert new object: {}")
        changes = compare(self.atoms[version], old, new)
        return changes.exclude(self.reset_fields.get(version, EMPTY))


def known_managers(versions: Versions, managed: Managed, live: Json) -> dict[Manager, OwnedFields]:
    """Return the managers of existing versions, each with what it owns by the present types.

    Raise `Unconvertible` if the live object cannot be converted to one of these versions, or for a version that is refused.
    """
    used_versions = {owned.api_version for owned in managed.values()}
    if versions.unknown_version and (unknown := used_versions - versions.atoms.keys()):
        raise Unconvertible(versions.unknown_version.format(min(unknown)))
    for version in used_versions & versions.atoms.keys():
        versions.to_version(version, live)
    return {
        owner: reconcile_owned_fields(versions.atoms[owned.api_version], owned)
        for owner, owned in managed.items()
        if owned.api_version in versions.atoms
    }


def settle(
    versions: Versions, managed: Managed, before: Json, after: Json, *, taker: Manager, force: bool
) -> tuple[dict[Manager, OwnedFields], Comparison]:
    """Remove the changed and removed fields from every manager but one; managers without fields are left out.

    Raise `Conflicts` if another manager owns a changed field and it is not forced. Also return what changed.
    """
    changes = {versions.own: versions.compare(versions.own, before, after)}
    rest = {}
    conflicts: list[Conflict] = []
    for owner, owned in managed.items():
        if owner == taker:
            fields = owned.fields
        else:
            if owned.api_version not in changes:
                changes[owned.api_version] = versions.compare(owned.api_version, before, after)
            change = changes[owned.api_version]
            lost = intersection(owned.fields, change.changed_fields)
            conflicts += [Conflict(owner, path) for path in paths(lost)]
            fields = difference(difference(owned.fields, lost), change.removed)
        if fields:
            rest[owner] = owned.with_fields(fields)
    if conflicts and not force:
        raise Conflicts(sorted(conflicts, key=lambda conflict: conflict.manager.text()))
    return rest, changes[versions.own]

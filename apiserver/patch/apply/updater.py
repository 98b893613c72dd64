"""Updates and applies: the managers and the object after a write (structured-merge-diff's merge.Updater)."""

from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from . import fieldset
from .atoms import Atom
from .compare import equal
from .conflicts import known_managers, remove_from_others
from .fieldset import FieldSet
from .managers import NEVER_OWNED, Managed, ManagerIdentifier, OwnedFields, VersionConverter
from .merge import merge
from .typed_fields import applied_fields, ensure_named_fields, remove


class WriterInfo(Struct, frozen=True, kw_only=True):
    """The manager, the time and the `force` flag of a write."""

    owner: ManagerIdentifier
    time: str | None
    force: bool = True


def update(
    versions: VersionConverter, managed: Managed, before: ReadOnlyTree, after: ReadOnlyTree, write: WriterInfo
) -> dict[ManagerIdentifier, OwnedFields]:
    """Return the managers after an update: the writer owns the fields that it changed, besides those it already had."""
    rest, change = remove_from_others(
        versions, known_managers(versions, managed, before), before, after, writer=write.owner, force=True
    )
    new_fields = fieldset.difference(change.changed_fields, NEVER_OWNED)
    own = rest.pop(write.owner, OwnedFields(fieldset.EMPTY, versions.own))
    lost = fieldset.difference(fieldset.intersection(own.fields, change.changed_fields), new_fields)
    own = own.with_fields(
        fieldset.union(fieldset.difference(fieldset.difference(own.fields, change.removed), lost), new_fields)
    )
    if own.fields:
        rest[write.owner] = own._replace(time=write.time) if new_fields else own
    return rest


def apply(
    versions: VersionConverter, managed: Managed, live: ReadOnlyTree, config: ReadOnlyTree, write: WriterInfo
) -> tuple[ReadOnlyTree, dict[ManagerIdentifier, OwnedFields]]:
    """Apply a configuration; return the object and its managers.

    Fields that the applier applied last time but not now are removed, unless another manager owns them. Raise `Conflicts` if
    another manager owns a field that would change, unless `write.force` is set. An unchanged object is returned itself.
    """
    managed = known_managers(versions, managed, live)
    last = managed.get(write.owner, OwnedFields(fieldset.EMPTY, versions.own))
    applied = applied_fields(versions.atoms[versions.own], config)
    applied = fieldset.recursive_difference(applied, versions.reset_fields.get(versions.own, fieldset.EMPTY))
    managed[write.owner] = OwnedFields(applied, versions.own)
    new = _prune(versions, merge(versions.atoms[versions.own], live, config), managed, last)
    managed, _ = remove_from_others(versions, managed, live, new, writer=write.owner, force=write.force)
    changed = not equal(live, new)
    own = managed.pop(write.owner, last)
    fields = fieldset.difference(own.fields, NEVER_OWNED)
    if fields:
        # An entry with unchanged fields is not encoded again.
        own = last.with_fields(last.fields if fields == last.fields else fields)
        time = write.time if changed else last.time
        managed[write.owner] = own._replace(api_version=versions.own, time=time)
    return new if changed else live, managed


# --- fields that the applier no longer applies


_UNPRUNED: Final = "failed to prune fields: {}"
_AT_LAST_VERSION: Final = (
    "failed to prune fields: failed to convert merged object to last applied version: {}"
)
_OWNED: Final = (
    "failed to prune fields: failed add back owned items: failed to convert {} object at version {}: {{}}"
)
_DANGLING: Final = (
    "failed to prune fields: failed add back dangling items: "
    "failed to convert pruned object to last applied version: {}"
)


def _prune(
    versions: VersionConverter, merged: ReadOnlyTree, managed: Managed, last: OwnedFields
) -> ReadOnlyTree:
    """Return the object without the fields that the applier owned last time and that no manager owns now.

    `managed` contains the applier's new fields. Fields below a removed object or item are restored if a manager owns them, or
    if the applier did not own them. A field of the applier is also lost if a conversion to the version of another manager
    loses it, as upstream.
    """
    if not last.fields:
        return merged
    owned = _fields_by_version(managed)
    has_one_version = {last.api_version, *owned} == {versions.own}
    if has_one_version and not fieldset.difference(last.fields, owned[versions.own]):
        return merged
    atom = versions.atoms[last.api_version]
    full_object = versions.to_version(last.api_version, merged, _AT_LAST_VERSION)
    owned_last = ensure_named_fields(atom, last.fields)
    pruned = remove(atom, full_object, owned_last)
    # The last version comes first: converting the object may need fields of other managers.
    for version in sorted(owned, key=lambda version: version != last.api_version):
        pruned = _restore_owned_fields(versions, version, full_object, pruned, owned[version])
    pruned = versions.to_version(last.api_version, pruned, _DANGLING)
    pruned_fields = fieldset.difference(_declared_fields(atom, full_object), _declared_fields(atom, pruned))
    return versions.to_version(
        versions.own, remove(atom, full_object, fieldset.intersection(pruned_fields, owned_last)), _UNPRUNED
    )


def _fields_by_version(managed: Managed) -> dict[str, FieldSet]:
    """Return all owned fields by API version."""
    owned: dict[str, list[FieldSet]] = {}
    for entry in managed.values():
        owned.setdefault(entry.api_version, []).append(entry.fields)
    return {version: fieldset.union_of(sets) for version, sets in owned.items()}


def _restore_owned_fields(
    versions: VersionConverter, version: str, full_object: ReadOnlyTree, pruned: ReadOnlyTree, owned: FieldSet
) -> Any:
    """Return the pruned object with the removed fields restored that a manager owns in this version."""
    atom = versions.atoms[version]
    full_object = versions.to_version(version, full_object, _OWNED.format("merged", version))
    pruned = versions.to_version(version, pruned, _OWNED.format("pruned", version))
    retained_fields = fieldset.union(_declared_fields(atom, pruned), ensure_named_fields(atom, owned))
    return remove(
        atom, full_object, fieldset.difference(_declared_fields(atom, full_object), retained_fields)
    )


def _declared_fields(atom: Atom, value: ReadOnlyTree) -> FieldSet:
    return ensure_named_fields(atom, applied_fields(atom, value))

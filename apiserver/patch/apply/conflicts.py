"""The fields that other managers lose by a write, and the conflicts of an apply.

Managers own fields in the API version of their requests, so an object is compared in each of these versions.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from mockube.apimachinery import gotext
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.tree import ReadOnlyTree

from . import fieldset, fieldsv1
from .atoms import Atom, Scalar, child_atom
from .compare import Comparison
from .fieldset import FieldSet, Path
from .managers import Managed, ManagerIdentifier, OwnedFields, UnconvertibleVersion, VersionConverter


class FieldConflict(NamedTuple):
    """A changed field that another manager owns."""

    manager: ManagerIdentifier
    path: Path

    @property
    def message(self) -> str:
        return f"conflict with {format_manager(self.manager)}"

    @property
    def field(self) -> str:
        return fieldset.format_path(self.path)


class Conflicts(PatchError):
    """An apply without `force` would change fields that other managers own."""

    def __init__(self, conflicts: Iterable[FieldConflict]) -> None:
        self.conflicts: Sequence[FieldConflict] = tuple(conflicts)
        super().__init__(_conflicts_message(self.conflicts))


def _conflicts_message(conflicts: Sequence[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    lines: list[str] = []
    managers = {conflict.manager for conflict in conflicts}
    for manager in sorted(managers, key=ManagerIdentifier.text):
        lines.append(f"conflicts with {format_manager(manager)}:")
        lines += [f"- {conflict.field}" for conflict in conflicts if conflict.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def format_manager(manager: ManagerIdentifier) -> str:
    text = gotext.quote(manager.name)
    if manager.subresource:
        text += f" with subresource {gotext.quote(manager.subresource)}"
    return text if manager.is_apply else f"{text} using {manager.api_version}"


# --- adaptation of owned fields to the current types


def reconcile_owned_fields(atom: Atom, owned: OwnedFields) -> OwnedFields:
    """Return a manager's fields, adapted to the current type (ReconcileFieldSetWithSchema)."""
    reconcile = _reconcile_text_cached if len(owned.text) <= fieldsv1.MAX_LENGTH else _reconcile_text
    fields = reconcile(atom, owned.text) if owned.text else None
    return owned if fields is None else owned.with_fields(fields)


def _reconcile_text(atom: Atom, text: bytes) -> FieldSet | None:
    """Return the adapted set, or None if it does not change."""
    before = fieldsv1.read(text).fields
    after = _reconcile_fields(atom, before)
    return None if after is before else after


_reconcile_text_cached = lru_cache(fieldsv1.CACHE_SIZE)(_reconcile_text)


def _reconcile_fields(atom: Atom | None, fields: FieldSet) -> FieldSet:
    changed = {}
    for element, node in fields.items():
        if element != fieldset.SELF and not fieldset.is_leaf(node):
            kind = child_atom(atom, element)
            is_atomic = kind is not None and not isinstance(kind, Scalar) and kind.atomic
            reconciled = fieldset.LEAF if is_atomic else _reconcile_fields(kind, node)
            if reconciled is not node:
                changed[element] = reconciled
    return FieldSet({**fields, **changed}) if changed else fields


# --- ownership: a manager that changes a field takes it from all others; a removed field has no owner


def known_managers(
    versions: VersionConverter, managed: Managed, live: ReadOnlyTree
) -> dict[ManagerIdentifier, OwnedFields]:
    """Return the managers whose API versions exist, with their fields adapted to the current types.

    Raise `UnconvertibleVersion` if the live object cannot be converted to one of the versions, or if an unknown version is an error.
    """
    used_versions = {owned.api_version for owned in managed.values()}
    if versions.unknown_version and (unknown := used_versions - versions.atoms.keys()):
        raise UnconvertibleVersion(versions.unknown_version.format(min(unknown)))
    for version in used_versions & versions.atoms.keys():
        versions.to_version(version, live)
    return {
        owner: reconcile_owned_fields(versions.atoms[owned.api_version], owned)
        for owner, owned in managed.items()
        if owned.api_version in versions.atoms
    }


def remove_from_others(
    versions: VersionConverter,
    managed: Managed,
    before: ReadOnlyTree,
    after: ReadOnlyTree,
    *,
    writer: ManagerIdentifier,
    force: bool,
) -> tuple[dict[ManagerIdentifier, OwnedFields], Comparison]:
    """Remove changed and removed fields from all managers but the writer; managers without fields are left out.

    Raise `Conflicts` if another manager owns a changed field, unless `force` is set. Also return the changes in the request's
    version.
    """
    changes = {versions.own: versions.compare(versions.own, before, after)}
    rest = {}
    conflicts: list[FieldConflict] = []
    for owner, owned in managed.items():
        if owner == writer:
            fields = owned.fields
        else:
            if owned.api_version not in changes:
                changes[owned.api_version] = versions.compare(owned.api_version, before, after)
            change = changes[owned.api_version]
            lost = fieldset.intersection(owned.fields, change.changed_fields)
            conflicts += [FieldConflict(owner, path) for path in fieldset.paths(lost)]
            fields = fieldset.difference(fieldset.difference(owned.fields, lost), change.removed)
        if fields:
            rest[owner] = owned.with_fields(fields)
    if conflicts and not force:
        raise Conflicts(sorted(conflicts, key=lambda conflict: conflict.manager.text()))
    return rest, changes[versions.own]

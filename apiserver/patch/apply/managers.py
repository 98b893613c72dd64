"""Managers and the fields that each owns: `metadata.managedFields`.

A manager is identified by its name, its operation (Apply or Update), its subresource and, for updates only, its API
version: an applier has one entry for all versions. A manager owns fields in the version of its requests, so objects are
converted to the versions of all managers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import ReadOnlyTree

from . import fieldsv1
from .atoms import Atom, TypedError
from .compare import Comparison, compare
from .elements import MalformedFields
from .fieldset import EMPTY, FieldSet, of_fields, union_of
from .validate import validate

APPLY: Final = "Apply"
UPDATE: Final = "Update"

MAX_UPDATERS: Final = 10
"""The maximum number of managers of updates with a separate entry."""

ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager that the oldest managers of updates are merged into."""

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
"""The fields that no manager can own: those that every object has, and those that the server sets."""


class ManagerIdentifier(NamedTuple):
    """The identity of a manager. `api_version` is empty for an applier."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def is_apply(self) -> bool:
        return self.operation == APPLY

    def text(self) -> str:
        """Return upstream's identifier of the manager, by which managers are sorted."""
        members = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return gotext.marshal({name: value for name, value in members.items() if value})


class OwnedFields(NamedTuple):
    """The fields of a manager, their API version, and the time of its last change."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    text: bytes = b""
    """The text that the fields were decoded from, if they have not changed since."""

    def with_fields(self, fields: FieldSet) -> "OwnedFields":
        return self if fields is self.fields else self._replace(fields=fields, text=b"")


Managed: TypeAlias = Mapping[ManagerIdentifier, OwnedFields]


def with_api_version(value: ReadOnlyTree, version: str) -> ReadOnlyTree:
    """Convert an object between versions that differ only in their names."""
    return {**value, "apiVersion": version}


class UnconvertibleVersion(ValueError):
    """An object cannot be converted to the version of a manager."""


class VersionConverter(Struct, frozen=True, kw_only=True):
    """The API versions of a resource; `own` is that of the request."""

    own: str
    atoms: Mapping[str, Atom]
    convert: Callable[[ReadOnlyTree, str], ReadOnlyTree] = with_api_version
    """A function that converts an object to another version."""
    reset_fields: Mapping[str, FieldSet] = field(default_factory=dict)
    """The fields that requests of this endpoint cannot change and so never own, by version: the status, or all others."""

    unknown_version: str = ""
    """The error for a manager with an unknown version; if it is empty, the manager is dropped."""

    def to_version(self, version: str, value: ReadOnlyTree, refusal: str = "{}") -> ReadOnlyTree:
        """Convert an object to a version; raise `UnconvertibleVersion`, with `refusal` as the format, if the result is invalid."""
        if version == value.get("apiVersion", self.own):
            return value
        try:
            converted = self.convert(value, version)
            validate(self.atoms[version], converted)
        except (UnconvertibleVersion, TypedError) as error:
            raise UnconvertibleVersion(refusal.format(error)) from error
        return converted

    def compare(self, version: str, before: ReadOnlyTree, after: ReadOnlyTree) -> Comparison:
        """Compare two objects in a version, without its reset fields."""
        old = self.to_version(version, before, "failed to convert old object: {}")
        new = self.to_version(version, after, "failed to convert new object: {}")
        changes = compare(self.atoms[version], old, new)
        return changes.exclude(self.reset_fields.get(version, EMPTY))


def decode(entries: Iterable[Mapping[str, Any]]) -> dict[ManagerIdentifier, OwnedFields]:
    """Decode the entries of `managedFields`; raise `MalformedFields` if one is invalid."""
    return dict(_decode(number, entry) for number, entry in enumerate(entries))


def _decode(number: int, entry: Mapping[str, Any]) -> tuple[ManagerIdentifier, OwnedFields]:
    name, operation, api_version, fields_type, subresource = (
        entry.get(key) or "" for key in ("manager", "operation", "apiVersion", "fieldsType", "subresource")
    )
    if operation not in (APPLY, UPDATE):
        raise MalformedFields("operation must be `Apply` or `Update`")
    if not api_version:
        raise MalformedFields("apiVersion must not be empty")
    if not fields_type:
        raise MalformedFields(f"missing fieldsType in managed fields entry {number}")
    if fields_type != "FieldsV1":
        raise MalformedFields(
            f"invalid fieldsType {gotext.quote(fields_type)} in managed fields entry {number}"
        )
    owner = ManagerIdentifier(name, operation, "" if operation == APPLY else api_version, subresource)
    tree = entry.get("fieldsV1")
    text, fields = fieldsv1.decode({} if tree is None else tree)
    return owner, OwnedFields(fields, api_version, entry.get("time"), text)


def encode(managed: Managed) -> list[dict[str, Any]]:
    """Encode the entries of `managedFields`, sorted: appliers before updaters, then by time, then by name."""
    return [
        entry(owner, owned.api_version, owned.time, fieldsv1.encode(owned.fields))
        for owner, owned in sorted(managed.items(), key=_sort_key)
    ]


def _sort_key(item: tuple[ManagerIdentifier, OwnedFields]) -> tuple[str, str, str, str, str]:
    owner, owned = item
    return owner.operation, owned.time or "", owner.name, owned.api_version, owner.subresource


def entry(
    owner: ManagerIdentifier, api_version: str, time: str | None, fields: dict[str, Any]
) -> dict[str, Any]:
    """Return the entry of one manager in `managedFields`."""
    members = {
        "manager": owner.name,
        "operation": owner.operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "subresource": owner.subresource,
    }
    return {name: value for name, value in members.items() if value or name == "fieldsV1"}


def cap_managers(managed: Managed) -> Managed:
    """Merge the oldest managers of updates into one per API version, until at most `MAX_UPDATERS` remain."""
    updaters = [owner for owner in managed if not owner.is_apply]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managed
    updaters.sort(key=lambda owner: _age_key(owner, managed[owner]))
    rest = dict(managed)
    oldest: dict[str, ManagerIdentifier] = {}
    joined: dict[ManagerIdentifier, list[FieldSet]] = {}
    for owner in updaters:
        if surplus <= 0:
            break
        owned = rest[owner]
        bucket = ManagerIdentifier(ANCIENT_CHANGES, UPDATE, owned.api_version)
        if owned.api_version not in oldest:
            oldest[owned.api_version] = owner
            continue
        if bucket not in rest:
            rest[bucket] = rest.pop(oldest[owned.api_version])
        joined.setdefault(bucket, [rest[bucket].fields]).append(owned.fields)
        rest[bucket] = owned
        del rest[owner]
        surplus -= 1
    for bucket, sets in joined.items():
        if bucket in rest:
            rest[bucket] = rest[bucket].with_fields(union_of(sets))
    return rest


def _age_key(owner: ManagerIdentifier, owned: OwnedFields) -> tuple[str, str]:
    return owned.time or "", owner.text()


def with_old_times(old: ReadOnlyTree, new: dict[str, Any]) -> dict[str, Any]:
    """Return the new object, with the old times of its managers if nothing else changed.

    A write without other changes must not create a new version of the object only for the time.
    """
    before, after = _entries(old), _entries(new)
    if (
        before == after
        or _without_times(before) != _without_times(after)
        or _without_managed_fields(old) != _without_managed_fields(new)
    ):
        return new
    return meta.with_metadata(new, managedFields=before)


def _entries(obj: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return meta.metadata(obj).get("managedFields") or []


def _without_times(entries: Sequence[ReadOnlyTree]) -> list[ReadOnlyTree]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def _without_managed_fields(obj: ReadOnlyTree) -> ReadOnlyTree:
    metadata = {key: value for key, value in meta.metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}

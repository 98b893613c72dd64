"""The field manager of one resource at one endpoint: the object and its `managedFields` after a write.

Pure: the time is an argument. The arguments are objects in the API version of the request, in the server's form; the
results still have to be defaulted and validated.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.patch.errors import PatchError, UndecodablePatch
from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from . import creation, last_applied, managers, updater
from .atoms import TypedError
from .conflicts import Conflicts
from .elements import MalformedFields
from .fieldset import has_path
from .managers import (
    APPLY,
    UPDATE,
    Managed,
    ManagerIdentifier,
    UnconvertibleVersion,
    VersionConverter,
    cap_managers,
)
from .updater import WriterInfo
from .validate import validate

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of the fields that an object had before its field ownership was tracked."""

UNKNOWN: Final = "unknown"
"""The name of a manager without a name."""


_PATCH: Final = "failed to create typed patch object ({}): {}"
_LIVE: Final = "failed to create typed live object ({}): {}"
_UNMANAGED: Final = (
    "failed to create manager for existing fields: failed to convert new object ({}) to smd typed: {}"
)


class ObjectTypeError(PatchError):
    """An object does not conform to its type."""


class FieldManager(Struct, frozen=True, kw_only=True, dict=True):
    """The field manager for the requests of one endpoint in one API version."""

    kind: str
    versions: VersionConverter
    empty: ReadOnlyTree
    """An object without set fields, in the server's form."""
    subresource: str = ""
    is_custom: bool = False
    """Whether the objects are custom objects, in which an empty `managedFields` is lost during decoding."""
    may_be_mistyped: bool = False
    """Whether live objects can violate their types: they were written in another version, or under an earlier schema."""
    untyped: tuple[str, ...] = ()
    """The members that this endpoint drops. They can have any type before; nothing is owned of a mistyped one."""
    keeps_managers: bool = True
    """Whether an object keeps its managers when they cannot be updated, instead of losing them."""

    def create(self, new: ReadOnlyTree, *, manager: str, time: str | None) -> dict[str, Any]:
        """Return a new object with its manager; equivalent to an update of the empty object, but faster."""
        if meta.metadata(new).get("managedFields") is not None:
            return self.update(self.empty, new, manager=manager, time=time)
        try:
            self._check_untyped(new, self.empty)
            fields = self._fields_of_new(new)
        except TypedError:
            fields = {}
        owner = ManagerIdentifier(manager or UNKNOWN, UPDATE, self.versions.own, self.subresource)
        entries = [managers.entry(owner, owner.api_version, time, fields)] if fields else []
        return meta.with_metadata(new, managedFields=entries)

    def update(
        self, live: ReadOnlyTree, new: ReadOnlyTree, *, manager: str, time: str | None
    ) -> dict[str, Any]:
        """Return the new object with its managers after an update or patch.

        The request can change `managedFields` itself, or reset them with `[]` or `[{}]`; absent or invalid ones have no
        effect. Requests of a subresource cannot change them.
        """
        managed = self._managers_before(live, new)
        if not managed and meta.uid(live):
            # No manager is tracked yet; only an apply starts the tracking.
            return _with_managers(new, {})
        try:
            self._check_untyped(new, live)
            if self.may_be_mistyped:
                self._validate(_without_managed_fields(live))
            return _with_managers(new, self._managers_after_update(managed, live, new, manager, time))
        except (TypedError, UnconvertibleVersion):
            # Either validation will reject the object with a better message, or the object cannot be converted to the
            # version of another manager.
            before = meta.metadata(live).get("managedFields") if self.keeps_managers else None
            return meta.with_metadata(new, managedFields=before or [])

    def _check_untyped(self, new: ReadOnlyTree, live: ReadOnlyTree) -> None:
        for name in self.untyped:
            if name in new and new[name] != live.get(name):
                self._validate({name: new[name]})

    def _validate(self, value: ReadOnlyTree) -> None:
        validate(self.versions.atoms[self.versions.own], value, duplicates=True)

    @cached_property
    def _fields_of_new(self) -> creation.FieldsWriter:
        return creation.writer(self.versions, self.empty)

    def _managers_before(self, live: ReadOnlyTree, new: ReadOnlyTree) -> Managed:
        """Return the managers before the write: those of the new object if it sets them, else those of the live object."""
        entries = meta.metadata(new).get("managedFields")
        if not self.subresource and entries is not None:
            if entries == [{}] or (not entries and not self.is_custom):
                return {}
            if managers_of_new := _decode_entries(entries):
                return managers_of_new
        return _decode_entries(meta.metadata(live).get("managedFields") or ())

    def _managers_after_update(
        self, managed: Managed, live: ReadOnlyTree, new: ReadOnlyTree, manager: str, time: str | None
    ) -> Managed:
        owner = ManagerIdentifier(manager or UNKNOWN, UPDATE, self.versions.own, self.subresource)
        return cap_managers(
            updater.update(
                self.versions,
                managed,
                _without_managed_fields(live),
                _without_managed_fields(new),
                WriterInfo(owner=owner, time=time),
            )
        )

    def apply(
        self, live: ReadOnlyTree, config: ReadOnlyTree, *, manager: str, time: str | None, force: bool = False
    ) -> dict[str, Any]:
        """Apply a configuration to the live object; return the merged object with its managers.

        Raise `Conflicts` if another manager owns a field that would change, unless `force` is set. `live` is the empty
        object if none exists.
        """
        self._check(config)
        try:
            managed: Managed = managers.decode(meta.metadata(live).get("managedFields") or ())
        except MalformedFields as error:
            raise ObjectTypeError(f"failed to decode managed fields: {error}") from None
        owner = ManagerIdentifier(manager or UNKNOWN, APPLY, "", self.subresource)
        refusal = _LIVE if managed else _UNMANAGED
        try:
            if not managed:
                self._check_live(live, _UNMANAGED)
                managed = self._managers_after_update(managed, self.empty, live, BEFORE_FIRST_APPLY, time)
            self._check_typed(config, _PATCH)
            self._check_live(live, _LIVE)
            ignored, config = config, _without_managed_fields(config)
            new, managed = self._apply(managed, live, config, WriterInfo(owner=owner, time=time, force=force))
            _check_times(ignored)
        except UnconvertibleVersion as error:
            raise ObjectTypeError(str(error)) from None
        except TypedError as error:
            self._check_typed(_without_managed_fields(live), refusal, duplicates=True)
            # It is valid in this version, but not in the version of another manager.
            raise ObjectTypeError(f"failed to convert old object: {error}") from None
        applied = _with_managers(new, managed)
        return last_applied.with_last_applied(applied, config) if manager == last_applied.KUBECTL else applied

    def check_type(self, config: ReadOnlyTree) -> None:
        """Raise `UndecodablePatch` unless a configuration has the field manager's kind and version."""
        if (meta.api_version(config), meta.kind(config)) != (self.versions.own, self.kind):
            raise UndecodablePatch(f"invalid object type: {format_kind(config)}")

    def _check(self, config: ReadOnlyTree) -> None:
        self.check_type(config)
        entries = _unchecked_metadata(config).get("managedFields")
        # Upstream ignores all entries if it cannot read one of them.
        if isinstance(entries, list) and all(map(_is_readable, entries)):
            raise UndecodablePatch("metadata.managedFields must be nil")

    def _check_live(self, live: ReadOnlyTree, refusal: str) -> None:
        if self.may_be_mistyped:
            self._check_typed(_without_managed_fields(live), refusal, duplicates=True)

    def _check_typed(self, obj: ReadOnlyTree, refusal: str, *, duplicates: bool = False) -> None:
        try:
            validate(self.versions.atoms[self.versions.own], obj, duplicates=duplicates)
        except TypedError as error:
            raise ObjectTypeError(refusal.format(describe_object(obj), error)) from None

    def _apply(
        self, managed: Managed, live: ReadOnlyTree, config: ReadOnlyTree, write: WriterInfo
    ) -> tuple[ReadOnlyTree, Managed]:
        live = _without_managed_fields(live)
        try:
            return updater.apply(self.versions, managed, live, config, write)
        except Conflicts as refused:
            if write.owner.name != last_applied.KUBECTL:
                raise
            last_applied_paths = last_applied.last_applied_fields(
                self.versions.atoms[self.versions.own], live
            )
            others = [
                conflict for conflict in refused.conflicts if not has_path(last_applied_paths, conflict.path)
            ]
            if others:
                raise Conflicts(others) from None
        return updater.apply(self.versions, managed, live, config, replace(write, force=True))


def _decode_entries(entries: Iterable[Mapping[str, Any]]) -> Managed:
    try:
        return managers.decode(entries)
    except MalformedFields:
        return {}


def _without_managed_fields(obj: ReadOnlyTree) -> ReadOnlyTree:
    """Return an object without its managed fields, which have no owner."""
    metadata = dict(meta.metadata(obj))
    return obj if metadata.pop("managedFields", None) is None else {**obj, "metadata": metadata}


def _with_managers(obj: ReadOnlyTree, managed: Managed) -> dict[str, Any]:
    return meta.with_metadata(obj, managedFields=managers.encode(managed))


def _is_readable(entry: Any) -> bool:
    """Return whether an entry of `managedFields` that is not validated yet can be read."""
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str | None) for name in _TEXTS_OF_ENTRIES)
        and not _time_problem(entry)
    )


def _time_problem(entry: Any) -> str:
    time = entry.get("time") if isinstance(entry, dict) else None
    if not isinstance(time, str):
        return ""
    try:
        parse_time(time)
    except TimestampError as error:
        return str(error)
    return ""


def _check_times(config: ReadOnlyTree) -> None:
    """Refuse an ignored entry whose time is malformed: upstream converts the merged object with it."""
    for entry in meta.metadata(config).get("managedFields") or ():
        if problem := _time_problem(entry):
            about, kind = describe_object(config), format_kind(config)
            conversion = f"to proper version: unable to convert unstructured object to {kind}"
            raise ObjectTypeError(f"failed to convert new object ({about}) {conversion}: {problem}")


_TEXTS_OF_ENTRIES: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")


def _unchecked_metadata(obj: ReadOnlyTree) -> ReadOnlyTree:
    """Return the metadata of an object that is not validated yet; {} if it is not an object."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def describe_object(obj: ReadOnlyTree) -> str:
    """Format the namespace, name and kind of an object for errors."""
    metadata = _unchecked_metadata(obj)
    namespace, name = (metadata.get(field) for field in ("namespace", "name"))
    return f"{_text(namespace)}/{_text(name)}; {format_kind(obj)}"


def format_kind(obj: ReadOnlyTree) -> str:
    """Format the kind of an object for errors, as schema.GroupVersionKind."""
    group, _, version = _text(obj.get("apiVersion")).rpartition("/")
    return f"{group}/{version}, Kind={_text(obj.get('kind'))}"


def _text(value: Any) -> str:
    """Return a string, or "" for any other value."""
    return value if isinstance(value, str) else ""

"""Server-side apply of one resource through one endpoint: the object and its `managedFields` after a write.

Pure: the time is an argument. What is given is an object in the API version of the request, as the server would
write it; what is given back still has to be defaulted and validated.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.patch.apply import creation, last_applied, managers, updater
from mockube.apimachinery.patch.apply.atoms import TypedError
from mockube.apimachinery.patch.apply.conflicts import Conflicts
from mockube.apimachinery.patch.apply.elements import MalformedFields
from mockube.apimachinery.patch.apply.fieldset import has_path
from mockube.apimachinery.patch.apply.managers import (
    APPLY,
    UPDATE,
    Managed,
    Manager,
    Unconvertible,
    Versions,
    cap_managers,
)
from mockube.apimachinery.patch.apply.updater import Write
from mockube.apimachinery.patch.apply.validate import validate
from mockube.apimachinery.patch.errors import PatchError, Undecodable

Json: TypeAlias = Mapping[str, Any]

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of all fields that an object had before field ownership was tracked."""

UNKNOWN: Final = "unknown"
"""A manager without a name."""


_PATCH: Final = "failed to create typed patch object ({}): {}"
_LIVE: Final = "failed to create typed live object ({}): {}"
_UNMANAGED: Final = (
    "failed to create manager for existing fields: failed to convert new object ({}) to smd typed: {}"
)


class Untypable(PatchError):
    """An object does not conform to its type."""


class FieldManager(Struct, frozen=True, kw_only=True, dict=True):
    """The managers of fields, for the requests of one endpoint in one API version."""

    kind: str
    versions: Versions
    empty: Json
    """An object with nothing set, as the server would write it."""
    subresource: str = ""
    is_custom: bool = False
    """An empty list of managers is lost in custom objects before it is read."""
    may_be_mistyped: bool = False
    """Live objects may be of wrong types: they were written in another version, or checked by an earlier schema."""
    untyped: tuple[str, ...] = ()
    """Members that this way to write drops, and that may be of any type before: nothing is owned of a wrong one."""

    def create(self, new: Json, *, manager: str, time: str | None) -> dict[str, Any]:
        """A new object with its managers: as if the empty one became it, but in one walk."""
        if meta.metadata(new).get("managedFields") is not None:
            return self.update(self.empty, new, manager=manager, time=time)
        try:
            self._check_untyped(new, self.empty)
            fields = self._fields_of_new(new)
        except TypedError:
            fields = {}
        owner = Manager(manager or UNKNOWN, UPDATE, self.versions.own, self.subresource)
        entries = [managers.entry(owner, owner.api_version, time, fields)] if fields else []
        return meta.with_metadata(new, managedFields=entries)

    def update(self, live: Json, new: Json, *, manager: str, time: str | None) -> dict[str, Any]:
        """The new object with its managers after an update or patch.

        The writer may change `managedFields` itself, and resets them with `[]` or `[{}]`; a writer that leaves them
        out, or makes nonsense of them, does not. Through a subresource they cannot be changed.
        """
        managed = self._managers_before(live, new)
        if not managed and meta.uid(live):
            # No manager is tracked yet, and an apply begins the tracking.
            return _with_managers(new, {})
        try:
            self._check_untyped(new, live)
            if self.may_be_mistyped:
                self._validate(_without_managed_fields(live))
            return _with_managers(new, self._managers_after_update(managed, live, new, manager, time))
        except (TypedError, Unconvertible):
            # Validation is about to refuse the object with a better message; or the object cannot be converted to the
            # version of another manager.
            return _with_managers(new, {})

    def _check_untyped(self, new: Json, live: Json) -> None:
        for name in self.untyped:
            if name in new and new[name] != live.get(name):
                self._validate({name: new[name]})

    def _validate(self, value: Json) -> None:
        validate(self.versions.atoms[self.versions.own], value, duplicates=True)

    @cached_property
    def _fields_of_new(self) -> creation.Write:
        return creation.writer(self.versions, self.empty)

    def _managers_before(self, live: Json, new: Json) -> Managed:
        """Return the managers before the write: those of the new object, if it sets them, else those of the live one."""
        entries = meta.metadata(new).get("managedFields")
        if not self.subresource and entries is not None:
            if entries == [{}] or (not entries and not self.is_custom):
                return {}
            if managers_of_new := _decode_entries(entries):
                return managers_of_new
        return _decode_entries(meta.metadata(live).get("managedFields") or ())

    def _managers_after_update(
        self, managed: Managed, live: Json, new: Json, manager: str, time: str | None
    ) -> Managed:
        owner = Manager(manager or UNKNOWN, UPDATE, self.versions.own, self.subresource)
        return cap_managers(
            updater.update(
                self.versions,
                managed,
                _without_managed_fields(live),
                _without_managed_fields(new),
                Write(owner=owner, time=time),
            )
        )

    def apply(
        self, live: Json, config: Json, *, manager: str, time: str | None, force: bool = False
    ) -> dict[str, Any]:
        """The live object with what is applied merged into it, and its managers.

        `Conflicts` if another manager owns what would change, and it is not forced. `live` is the empty object if there
        is none yet.
        """
        self._check(config)
        try:
            managed: Managed = managers.decode(meta.metadata(live).get("managedFields") or ())
        except MalformedFields as error:
            raise Untypable(f"failed to decode managed fields: {error}") from None
        owner = Manager(manager or UNKNOWN, APPLY, "", self.subresource)
        refusal = _LIVE if managed else _UNMANAGED
        try:
            if not managed:
                self._check_live(live, _UNMANAGED)
                managed = self._managers_after_update(managed, self.empty, live, BEFORE_FIRST_APPLY, time)
            self._check_typed(config, _PATCH)
            self._check_live(live, _LIVE)
            new, managed = self._apply(managed, live, config, Write(owner=owner, time=time, force=force))
        except Unconvertible as error:
            raise Untypable(str(error)) from None
        except TypedError as error:
            self._check_typed(_without_managed_fields(live), refusal, duplicates=True)
            # It is valid in this version, but not in that of another manager.
            raise Untypable(f"failed to convert old object: {error}") from None
        applied = _with_managers(new, managed)
        return last_applied.with_last_applied(applied, config) if manager == last_applied.KUBECTL else applied

    def check_type(self, config: Json) -> None:
        """Raise an error unless a configuration is of the manager's kind and version."""
        if (meta.api_version(config), meta.kind(config)) != (self.versions.own, self.kind):
            raise Undecodable(f"invalid object type: {format_kind(config)}")

    def _check(self, config: Json) -> None:
        self.check_type(config)
        if isinstance(_said_metadata(config).get("managedFields"), list):
            raise Undecodable("metadata.managedFields must be nil")

    def _check_live(self, live: Json, refusal: str) -> None:
        if self.may_be_mistyped:
            self._check_typed(_without_managed_fields(live), refusal, duplicates=True)

    def _check_typed(self, obj: Json, refusal: str, *, duplicates: bool = False) -> None:
        try:
            validate(self.versions.atoms[self.versions.own], obj, duplicates=duplicates)
        except TypedError as error:
            raise Untypable(refusal.format(describe_object(obj), error)) from None

    def _apply(self, managed: Managed, live: Json, config: Json, write: Write) -> tuple[Json, Managed]:
        bare = _without_managed_fields(live)
        try:
            return updater.apply(self.versions, managed, bare, config, write)
        except Conflicts as refused:
            if write.owner.name != last_applied.KUBECTL:
                raise
            mine = last_applied.last_applied_fields(self.versions.atoms[self.versions.own], bare)
            others = [conflict for conflict in refused.conflicts if not has_path(mine, conflict.path)]
            if others:
                raise Conflicts(others) from None
        return updater.apply(self.versions, managed, bare, config, replace(write, force=True))


def _decode_entries(entries: Iterable[Mapping[str, Any]]) -> Managed:
    try:
        return managers.decode(entries)
    except MalformedFields:
        return {}


def _without_managed_fields(obj: Json) -> Json:
    """The object without its managed fields, which have no owner."""
    metadata = dict(meta.metadata(obj))
    return obj if metadata.pop("managedFields", None) is None else {**obj, "metadata": metadata}


def _with_managers(obj: Json, managed: Managed) -> dict[str, Any]:
    return meta.with_metadata(obj, managedFields=managers.encode(managed))


def _said_metadata(obj: Json) -> Json:
    """The metadata of an object whose types are not checked yet."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def describe_object(obj: Json) -> str:
    """An object by its name and kind, as errors show it."""
    metadata = _said_metadata(obj)
    namespace, name = (metadata.get(field) for field in ("namespace", "name"))
    return f"{_text(namespace)}/{_text(name)}; {format_kind(obj)}"


def format_kind(obj: Json) -> str:
    """The kind of an object as errors show it."""
    group, _, version = _text(obj.get("apiVersion")).rpartition("/")
    return f"{group}/{version}, Kind={_text(obj.get('kind'))}"


def _text(value: Any) -> str:
    """What is no text reads as empty."""
    return value if isinstance(value, str) else ""

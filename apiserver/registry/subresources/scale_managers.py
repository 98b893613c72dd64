"""The managers of an object's replicas, as its Scale shows them, and their entries in the object.

A Scale has one field that can be managed, `spec.replicas`; its path in the object is in the object's definition.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch.apply import managers

Entry: TypeAlias = Mapping[str, Any]

API_VERSION: Final = "autoscaling/v1"
Path: TypeAlias = tuple[str, ...]
PathIn: TypeAlias = Callable[[str], Path | None]
"""Where the replicas are in an API version: () for nowhere, None if there is no such version."""
_ITSELF: Final = "."
"""The element that marks a field with children as managed itself."""
_OF_SCALE: Final[Path] = ("spec", "replicas")


def of_scale(entries: Sequence[Entry], path_in: PathIn) -> list[Entry]:
    """Return the managers of an object's replicas, as managers of its Scale."""
    return [
        {**entry, "apiVersion": API_VERSION, "fieldsV1": _fields_of(_OF_SCALE)}
        for entry in _told_apart(entries)
        if _owns(entry, path_in(entry.get("apiVersion") or ""))
    ]


def of_object(
    entries: Sequence[Entry], of_scale: Sequence[Entry], api_version: str, path_in: PathIn
) -> list[Entry]:
    """Return an object's managers when only the managers of its Scale manage the replicas.

    As upstream: the updater of the object and the updater of its Scale are two managers, even if they are the same
    program on the same endpoint, because the API versions differ. The replicas then have an entry of their own,
    without a time. Of entries that differ only in their fields the last one is used by the next change, and an entry
    of a version that does not exist any more is removed.
    """
    mine = {_identity(entry): entry for entry in of_scale if _owns(entry, _OF_SCALE)}
    managers = []
    for entry in _told_apart(entries):
        path = path_in(entry.get("apiVersion") or "")
        if path is None:
            continue
        if not _owns(entry, path) or mine.pop(_identity(entry), {}):
            managers.append(entry)
        elif (rest := _remove_field(entry["fieldsV1"], path)) is not None:
            managers.append({**entry, "fieldsV1": rest})
    managers += (
        {name: value for name, value in entry.items() if name != "time"}
        | {"apiVersion": api_version, "fieldsV1": _fields_of(path_in(api_version) or ())}
        for entry in mine.values()
    )
    return sorted(managers, key=_sort_key)


def _told_apart(entries: Sequence[Entry]) -> Iterable[Entry]:
    return {_identity(entry): entry for entry in entries}.values()


def _sort_key(entry: Entry) -> tuple[str, ...]:
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in keys)


def _fields_of(path: Path) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = {}
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return fields


def _owns(entry: Entry, path: Path | None) -> bool:
    """Whether the field at the path is managed itself, not only what is in it."""
    fields = entry.get("fieldsV1") if path else None
    for step in path or ():
        fields = (fields or {}).get(f"f:{step}")
    return fields is not None and (not fields or _ITSELF in fields)


def _identity(entry: Entry) -> tuple[Any, ...]:
    """An applier is one manager in all API versions."""
    version = "" if entry.get("operation") == managers.APPLY else entry.get("apiVersion")
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource")


def _remove_field(fields: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """The fields without the one at the path; None if nothing is left. One around it that is managed itself stays."""
    if not path:
        return {name: value for name, value in fields.items() if name != _ITSELF} or None
    key = f"f:{path[0]}"
    inner = _remove_field(fields[key], path[1:])
    rest = {name: inner if name == key else value for name, value in fields.items()}
    if inner is None:
        del rest[key]
    return {} if rest.keys() == {_ITSELF} else rest or None

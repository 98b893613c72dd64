"""Who manages the replicas of an object, as its Scale shows it, and what becomes of that in the object.

A Scale has one field that anybody can manage, `spec.replicas`; where the object has it, its definition says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch.apply import managers

Entry: TypeAlias = Mapping[str, Any]

API_VERSION: Final = "autoscaling/v1"
Path: TypeAlias = tuple[str, ...]
_OF_SCALE: Final[Path] = ("spec", "replicas")


def of_scale(entries: Sequence[Entry], path: Path) -> list[Entry]:
    """Those of an object's managers who manage its replicas, as managers of its Scale."""
    return [
        {**one, "apiVersion": API_VERSION, "fieldsV1": _only(_OF_SCALE)}
        for one in _told_apart(entries)
        if _has(one, path)
    ]


def of_object(
    entries: Sequence[Entry], of_scale: Sequence[Entry], api_version: str, path: Path
) -> list[Entry]:
    """An object's managers, once its replicas are managed by those of its Scale and nobody else.

    As upstream: who updated the object is another manager than who updated its Scale, even if it is the same program
    through the same endpoint, for the API versions differ. The replicas then have an entry of their own, without a
    time; and of entries that only their fields tell apart the last one counts at the next change.
    """
    mine = {_identity(one): one for one in of_scale if _has(one, _OF_SCALE)}
    found = []
    for one in _told_apart(entries):
        if not _has(one, path) or mine.pop(_identity(one), {}):
            found.append(one)
        elif rest := _without(one["fieldsV1"], path):
            found.append({**one, "fieldsV1": rest})
    found += (
        {name: value for name, value in one.items() if name != "time"}
        | {"apiVersion": api_version, "fieldsV1": _only(path)}
        for one in mine.values()
    )
    return sorted(found, key=_order)


def _told_apart(entries: Sequence[Entry]) -> Iterable[Entry]:
    return {_identity(one): one for one in entries}.values()


def _order(entry: Entry) -> tuple[str, ...]:
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in keys)


def _only(path: Path) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = {}
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return fields


def _has(entry: Entry, path: Path) -> bool:
    fields = entry.get("fieldsV1")
    for step in path:
        fields = (fields or {}).get(f"f:{step}")
    return fields is not None


def _identity(entry: Entry) -> tuple[Any, ...]:
    """Who applies is one manager in all API versions."""
    version = "" if entry.get("operation") == managers.APPLY else entry.get("apiVersion")
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource")


def _without(fields: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The fields without the one at the path, and without those around it that nothing is left of."""
    step, *rest = path
    others = {name: value for name, value in fields.items() if name != f"f:{step}"}
    inner = _without(fields[f"f:{step}"], tuple(rest)) if rest else {}
    return {f"f:{step}": inner, **others} if inner.keys() - {"."} else others

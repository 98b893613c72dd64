"""Who manages the replicas of an object, as its Scale shows it, and what becomes of that in the object.

A Scale has one field that anybody can manage, and it lies where the object has it: `spec.replicas`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch.apply import managers

Entry: TypeAlias = Mapping[str, Any]

API_VERSION: Final = "autoscaling/v1"
_SPEC, _REPLICAS = "f:spec", "f:replicas"
_ONLY_REPLICAS: Final[Mapping[str, Any]] = {_SPEC: {_REPLICAS: {}}}


def of_scale(entries: Sequence[Entry]) -> list[Entry]:
    """Those of an object's managers who manage its replicas, as managers of its Scale."""
    return [
        {**one, "apiVersion": API_VERSION, "fieldsV1": _ONLY_REPLICAS}
        for one in _told_apart(entries)
        if _has(one)
    ]


def of_object(entries: Sequence[Entry], of_scale: Sequence[Entry], api_version: str) -> list[Entry]:
    """An object's managers, once its replicas are managed by those of its Scale and nobody else.

    As upstream: who updated the object is another manager than who updated its Scale, even if it is the same program
    through the same endpoint, for the API versions differ. The replicas then have an entry of their own, without a
    time; and of entries that only their fields tell apart the last one counts at the next change.
    """
    mine = {_identity(one): one for one in of_scale if _has(one)}
    found = []
    for one in _told_apart(entries):
        if not _has(one) or mine.pop(_identity(one), {}):
            found.append(one)
        elif (rest := _without_replicas(one))["fieldsV1"]:
            found.append(rest)
    found += (
        {name: value for name, value in one.items() if name != "time"}
        | {"apiVersion": api_version, "fieldsV1": _ONLY_REPLICAS}
        for one in mine.values()
    )
    return sorted(found, key=_order)


def _told_apart(entries: Sequence[Entry]) -> Iterable[Entry]:
    return {_identity(one): one for one in entries}.values()


def _order(entry: Entry) -> tuple[str, ...]:
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in keys)


def _has(entry: Entry) -> bool:
    return _REPLICAS in (entry.get("fieldsV1") or {}).get(_SPEC, ())


def _identity(entry: Entry) -> tuple[Any, ...]:
    """Who applies is one manager in all API versions."""
    version = "" if entry.get("operation") == managers.APPLY else entry.get("apiVersion")
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource")


def _without_replicas(entry: Entry) -> Entry:
    fields = dict(entry["fieldsV1"])
    rest = {name: value for name, value in fields.pop(_SPEC).items() if name != _REPLICAS}
    return {**entry, "fieldsV1": {_SPEC: rest, **fields} if rest.keys() - {"."} else fields}

"""Who manages the replicas of an object, as its Scale shows it, and what becomes of that in the object.

A Scale has one field that anybody can manage, and it lies where the object has it: `spec.replicas`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch.apply import managers

Entry: TypeAlias = Mapping[str, Any]

API_VERSION: Final = "autoscaling/v1"
_SPEC, _REPLICAS = "f:spec", "f:replicas"
_ONLY_REPLICAS: Final[Mapping[str, Any]] = {_SPEC: {_REPLICAS: {}}}


def of_scale(entries: Sequence[Entry]) -> list[Entry]:
    """Those of an object's managers who manage its replicas, as managers of its Scale."""
    return [{**one, "apiVersion": API_VERSION, "fieldsV1": _ONLY_REPLICAS} for one in entries if _has(one)]


def of_object(entries: Sequence[Entry], of_scale: Sequence[Entry], api_version: str) -> list[dict[str, Any]]:
    """An object's managers, once its replicas are managed by those of its Scale and nobody else."""
    mine = {_identity(one): one for one in of_scale if _has(one)}
    kept = [one if mine.pop(_identity(one), None) else _robbed(one) for one in entries if _has(one)]
    others = [one for one in entries if not _has(one)]
    new = [
        {name: value for name, value in one.items() if name != "time"}
        | {"apiVersion": api_version, "fieldsV1": _ONLY_REPLICAS}
        for one in mine.values()
    ]
    found = [one for one in (*others, *kept, *new) if one["fieldsV1"]]
    return managers.encode(managers.decode(found))


def _has(entry: Entry) -> bool:
    return _REPLICAS in (entry.get("fieldsV1") or {}).get(_SPEC, ())


def _identity(entry: Entry) -> tuple[Any, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource")


def _robbed(entry: Entry) -> Entry:
    """A manager who no longer manages the replicas."""
    fields = dict(entry["fieldsV1"])
    rest = {name: value for name, value in fields.pop(_SPEC).items() if name != _REPLICAS}
    return {**entry, "fieldsV1": {_SPEC: rest, **fields} if rest.keys() - {"."} else fields}

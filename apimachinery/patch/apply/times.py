"""Times of managers that only say that somebody wrote what was there already."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mockube.apimachinery import meta

Json: TypeAlias = Mapping[str, Any]


def kept(old: Json, new: dict[str, Any]) -> dict[str, Any]:
    """The new object, with the old times of its managers if nothing else is different.

    A write that changes nothing must not become a new version of the object for its time alone.
    """
    before, after = _entries(old), _entries(new)
    if before == after or _timeless(before) != _timeless(after) or _bare(old) != _bare(new):
        return new
    return meta.with_metadata(new, managedFields=before)


def _entries(obj: Json) -> Sequence[Json]:
    return meta.metadata(obj).get("managedFields") or []


def _timeless(entries: Sequence[Json]) -> list[Json]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def _bare(obj: Json) -> Json:
    metadata = {key: value for key, value in meta.metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}

"""Times of managers that only say that somebody wrote what was there already."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from apimachinery import meta
from apimachinery.patch.equality import same

Json: TypeAlias = Mapping[str, Any]


def kept(old: Json, new: Json) -> Json:
    """The new object, with the old times of its managers if nothing else is different.

    A write that changes nothing must not become a new version of the object for its time alone.
    """
    before, after = _entries(old), _entries(new)
    timeless = [_timeless(entries) for entries in (before, after)]
    if before == after or not same(*timeless) or not same(_bare(old), _bare(new)):
        return new
    return meta.with_metadata(new, managedFields=before)


def _entries(obj: Json) -> Sequence[Json]:
    return meta.metadata(obj).get("managedFields") or []


def _timeless(entries: Sequence[Json]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def _bare(obj: Json) -> dict[str, Any]:
    metadata = {key: value for key, value in meta.metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}

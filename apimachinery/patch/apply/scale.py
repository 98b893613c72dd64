"""Ownership of the number of replicas, seen through the `scale` subresource.

A Scale has one field that can be owned, which is a field of the object that it scales. Whoever writes the Scale takes
that field from its owners, and nothing else.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from apimachinery.patch.apply import managers
from apimachinery.patch.apply.fieldset import Path, difference, has, of_paths
from apimachinery.patch.apply.managers import Owned

Entries: TypeAlias = Iterable[Mapping[str, Any]]

VERSION: Final = "autoscaling/v1"
REPLICAS: Final[Path] = ("f:spec", "f:replicas")
"""Where a Scale has the number."""


def to_scale(entries: Entries, replicas: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The managers of a Scale, by those of its object. `replicas` says where the number is, by API version."""
    return managers.encode(
        {
            owner: Owned(of_paths([REPLICAS]), VERSION, owned.time)
            for owner, owned in managers.decode(entries).items()
            if owned.api_version in replicas and has(owned.fields, replicas[owned.api_version])
        }
    )


def from_scale(
    entries: Entries, scale_entries: Entries, replicas: Mapping[str, Path], version: str
) -> list[dict[str, Any]]:
    """The managers of an object after its Scale was written. `version` is the one that the object is written in.

    As the two speak of different versions, who updated the object is told apart from who updated the Scale, whatever
    their names; who applied is not.
    """
    before, scale = managers.decode(entries), managers.decode(scale_entries)
    after = {}
    for owner, owned in before.items():
        place = replicas.get(owned.api_version)
        if place is None:
            continue
        fields = owned.fields
        if has(fields, place) and scale.pop(owner, None) is None:
            fields = difference(fields, of_paths([place]))
        if fields:
            after[owner] = owned.now(fields)
    for owner, owned in scale.items():
        if has(owned.fields, REPLICAS):
            time = before[owner].time if owner in before else None
            after[owner] = Owned(of_paths([replicas[version]]), version, time)
    return managers.encode(after)

"""The supported minor releases of Kubernetes, and the differences of the older ones from the newest.

`data/minors.json.gz` contains, for each minor, the differences of its tables from those of the next one. It is loaded only
if an older minor is requested. The OpenAPI definitions, which are large, have a file for each minor: those of the newest are whole, and those of
another one are the differences from the next newer. `tools/minors` generates all of them.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Final, TypeAlias

from msgspec import Raw
from msgspec.json import decode

RELEASES: Final[Mapping[str, str]] = {
    "1.37": "1.37.2",
    "1.36": "1.36.3",
    "1.35": "1.35.4",
    "1.34": "1.34.4",
    "1.33": "1.33.13",
    "1.32": "1.32.13",
    "1.31": "1.31.14",
    "1.30": "1.30.14",
    "1.29": "1.29.15",
}
"""The patch release of each minor, from newest to oldest."""
MINORS: Final = tuple(RELEASES)
NEWEST: Final = MINORS[0]
OLDER: Final = MINORS[1:]

Changes: TypeAlias = Mapping[str, Raw | None]
"""The rows of a table that differ from the newest minor, by key and undecoded; None for rows that do not exist."""

_NULL: Final = b"null"


@cache
def is_before(minor: str, other: str) -> bool:
    """Return whether a minor is older than another."""
    return number(minor) < number(other)


def number(minor: str) -> int:
    return int(minor.partition(".")[2])


@cache
def changes(minor: str, table: str) -> Changes:
    """Return the differences of a minor's table from that of the newest."""
    if minor == NEWEST:
        return {}
    raw_changes: dict[str, Raw] = {}
    for older in OLDER[: OLDER.index(minor) + 1]:
        raw_changes |= _data()[older].get(table, {})
    return {key: None if bytes(value) == _NULL else value for key, value in raw_changes.items()}


@cache
def _data() -> Mapping[str, Mapping[str, Mapping[str, Raw]]]:
    return decode(_unpacked("data/minors.json.gz"), type=dict[str, dict[str, dict[str, Raw]]])


def _unpacked(path: str) -> bytes:
    packed = get_data(__package__, path)
    assert packed is not None, "the package is installed where its files can be read"
    return gzip.decompress(packed)


def openapi_definitions(minor: str) -> Mapping[str, Raw]:
    """Return the OpenAPI definitions that a minor publishes by name, each as undecoded JSON."""
    definitions: dict[str, Raw] = {}
    for newer in MINORS[: MINORS.index(minor) + 1]:
        definitions |= decode(_unpacked(f"data/definitions/{newer}.json.gz"), type=dict[str, Raw])
    return {name: value for name, value in sorted(definitions.items()) if bytes(value) != _NULL}


def table_of_minor(table: Mapping[str, Raw], minor: str, name: str) -> Mapping[str, Raw]:
    """Return a table of the newest minor as it is in another minor."""
    changed_rows = changes(minor, name)
    return (
        {key: value for key, value in {**table, **changed_rows}.items() if value is not None}
        if changed_rows
        else table
    )

"""The map `owners.yaml`: which files of ours have the rules of which files of upstream."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tools.minors.upstream import STAGING

FILE: Final = Path(__file__).with_name("owners.yaml")
UPSTREAM_FILES: Final = Path(__file__).with_name("upstream_files.txt")
"""The compared files of the current release, one a line, so that the map can be checked without a network."""


@dataclass(frozen=True)
class Owner:
    paths: tuple[str, ...] = ()
    """Files and folders of this repository."""
    absent: str = ""
    """Why there are none."""


Owners = Mapping[str, Owner]
"""By the path of a file or folder, or by `path#name`, which is every declaration of a file whose name starts so."""


def read_owners(text: str) -> Owners:
    return dict(_entries("", yaml.safe_load(text)))


def owner_of(owners: Owners, path: str, declaration: str = "") -> Owner | None:
    """Return the owner with the longest matching key; of a file as a whole, if no declaration is named."""
    matching = (key for key in owners if matches(key, path, declaration))
    key = max(matching, key=len, default=None)
    return None if key is None else owners[key]


def matches(key: str, path: str, declaration: str = "") -> bool:
    if "#" in key:
        return bool(declaration) and f"{path}#{declaration}".startswith(key)
    return path == key or path.startswith(key + "/")


def problems(owners: Owners, upstream: Iterable[str], root: Path) -> Iterator[str]:
    """What is wrong with the map, beside these files of upstream and this checkout."""
    files = tuple(upstream)
    for path in files:
        if owner_of(owners, path) is None:
            yield f"{path} has no owner"
    for key, owner in owners.items():
        if bool(owner.paths) == bool(owner.absent):
            yield f"{key} needs either paths or the reason of their absence"
        if not any(matches(key.partition("#")[0], path) for path in files):
            yield f"{key} is no compared file of upstream"
        yield from (f"{key}: {ours} does not exist" for ours in owner.paths if not (root / ours).exists())


def _entries(prefix: str, node: Mapping[str, Any]) -> Iterator[tuple[str, Owner]]:
    for key, value in node.items():
        path = _child_path(prefix, str(key)) if prefix else str(key).replace("k8s.io/", STAGING)
        if isinstance(value, dict) and value.keys() != {"absent"}:
            yield from _entries(path, value)
        else:
            yield path, _owner(value)


def _child_path(prefix: str, key: str) -> str:
    return f"{prefix}{key}" if key.startswith("#") else f"{prefix}/{key}"


def _owner(value: Any) -> Owner:
    if isinstance(value, dict):
        return Owner(absent=str(value["absent"] or ""))
    return Owner(paths=tuple(str(value).split()))

"""The files that a container has from ConfigMaps and Secrets, and which of them its log names."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import SECRETS
from mockube.apimachinery.tree import ReadOnlyTree

from .explanation import Origin
from .facts import Facts
from .volumes import CONFIG_MAPS

_SOURCES: Final = (("configMap", "ConfigMap", CONFIG_MAPS), ("secret", "Secret", SECRETS))
_GOES_ON: Final = re.compile(r"[\w-]|[./]\w")
"""What follows a path that is only the beginning of another one."""
_DATA: Final = ("data", "binaryData")


class MountedFile(Struct, frozen=True, kw_only=True):
    """A file of a container that is a key of a ConfigMap or a Secret."""

    path: str
    object: ReadOnlyTree
    key: str

    @property
    def origin(self) -> Origin:
        field = next(field for field in _DATA if self.key in (self.object.get(field) or {}))
        return Origin.of(self.object, field, self.key)

    @property
    def text(self) -> str:
        return f"{self.path}, the key {self.key} of the {meta.kind(self.object)} {meta.name(self.object)}"


def files_in_log(
    pod: ReadOnlyTree, container: ReadOnlyTree, lines: Sequence[str], facts: Facts
) -> Sequence[MountedFile]:
    """Return the files from ConfigMaps and Secrets that a log names, those that it names last first."""
    found: dict[str, MountedFile] = {}
    files = [*_mounted_files(pod, container, facts)]
    for line in reversed(lines):
        for file in files:
            if _names_path(line, file.path):
                found.setdefault(file.path, file)
    return [*found.values()]


def _names_path(line: str, path: str) -> bool:
    """Return whether a line has a path that does not go on behind it."""
    end = 0
    while (start := line.find(path, end)) >= 0:
        end = start + len(path)
        if not _GOES_ON.match(line, end):
            return True
    return False


def _mounted_files(pod: ReadOnlyTree, container: ReadOnlyTree, facts: Facts) -> Iterator[MountedFile]:
    volumes = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"], {})
        directory, only = mount["mountPath"].rstrip("/"), (mount.get("subPath") or "").strip("/")
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            for name, obj, key in _files_of(pod, source, facts):
                if not only:
                    yield MountedFile(path=f"{directory}/{name}", object=obj, key=key)
                elif name == only or name.startswith(f"{only}/"):
                    yield MountedFile(path=directory + name.removeprefix(only), object=obj, key=key)


def _files_of(
    pod: ReadOnlyTree, source: ReadOnlyTree, facts: Facts
) -> Iterator[tuple[str, ReadOnlyTree, str]]:
    """Yield the files of a volume, each with the object that has it and the key there."""
    for field, kind, resource in _SOURCES:
        reference: Any = source.get(field) or {}
        name = reference.get("name") or reference.get("secretName")
        found = facts.find(resource, meta.namespace(pod), name) if name else None
        if found is None:
            continue
        head = {"apiVersion": "v1", "kind": kind, **found}
        paths = {item["key"]: item["path"] for item in reference.get("items") or ()}
        for data in _DATA:
            for key in found.get(data) or ():
                if not paths or key in paths:
                    yield paths.get(key, key), head, key

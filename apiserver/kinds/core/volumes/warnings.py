"""The warnings of volumes in pods, of volume sources, and of claims."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.warnings import fractional_byte_warnings

DEPRECATED_SOURCES: Final[Mapping[str, str]] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
MAX_COMPARED: Final = 100
"""The limit of checked volumes and of checked files in each: every file is compared with all files before it."""
_REPORTED_NAMES: Final = {"storageos": "storageOS"}
"""Field names that differ in upstream's messages."""


def volume_source_warnings(source: ReadOnlyTree, path: Path) -> Iterator[str]:
    """Yield warnings of deprecated volume sources in a pod or a PersistentVolume."""
    if source.keys().isdisjoint(DEPRECATED_SOURCES):
        return
    for field, problem in DEPRECATED_SOURCES.items():
        if source.get(field) is not None:
            yield f"{path.child(_REPORTED_NAMES.get(field, field))}: {problem}"


def claim_warnings(spec: ReadOnlyTree | None, path: Path) -> Iterator[str]:
    resources = (spec or {}).get("resources") or {}
    for field in ("requests", "limits"):
        yield from fractional_byte_warnings(
            resources.get(field), path.child("resources", field), ("storage",)
        )


def volume_warnings(volumes: Iterable[ReadOnlyTree], path: Path) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        yield from volume_source_warnings(volume, path.index(index))
        if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
            field_path = path.index(index).child("ephemeral", "volumeClaimTemplate", "spec")
            yield from claim_warnings(template.get("spec"), field_path)
    with_files = (volume for volume in volumes if not volume.keys().isdisjoint(_WITH_FILES))
    for volume in islice(with_files, MAX_COMPARED):
        yield from _overlaps(volume)


class _File(NamedTuple):
    path: str
    """Without trailing slashes."""
    source_type: str = ""
    """The type of its source, if the message names it."""
    name: str | None = None

    def __str__(self) -> str:
        if not self.source_type:
            return quote(self.path)
        return f"{quote(self.path)} ({_name_text(self.source_type, self.name)})"

    def is_disjoint_from(self, other: "_File") -> bool:
        """Return whether the paths do not overlap: they differ, and neither is in the other's folder."""
        own_path, other_path = self.path, other.path
        if not own_path or not other_path:
            return True
        return (
            own_path != other_path
            and not own_path.startswith(f"{other_path}/")
            and not other_path.startswith(f"{own_path}/")
        )


def _overlaps(volume: ReadOnlyTree) -> Iterator[str]:
    for field, (source_type, name) in _SOURCES.items():
        if source := volume.get(field):
            for problem in _collisions(_items(source), []):
                title = _name_text(source_type, source.get(name, "") if name else None)
                yield f"{_volume_text(volume)} ({title}): {problem}"
    seen: list[_File] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            yield f"{_volume_text(volume)} (Projected) has no sources provided"
        for problem in _collisions(_projected_files(source), seen):
            yield f"{_volume_text(volume)} (Projected): {problem}"


def _volume_text(volume: ReadOnlyTree) -> str:
    return f"volume {quote(volume.get('name', ''))}"


def _collisions(files: Iterable[_File], seen: list[_File]) -> Iterator[str]:
    """Warn of files that collide with earlier ones, up to a number of comparisons."""
    for file in islice(files, MAX_COMPARED - len(seen)):
        for other in seen:
            if not file.is_disjoint_from(other):
                yield f"overlapping paths: {file} with {other}"
        seen.append(file)


_SOURCES: Final = {
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "downwardAPI": ("DownwardAPI", ""),
}
"""For each source: its type in messages, and the field with the name of its object."""
_WITH_FILES: Final = frozenset({*_SOURCES, "projected"})


def _name_text(source_type: str, name: str | None) -> str:
    return source_type if name is None else f"{source_type} {quote(name)}"


def _items(source: ReadOnlyTree, source_type: str = "", name: str | None = None) -> list[_File]:
    return [_File(item.get("path", "").rstrip("/"), source_type, name) for item in source.get("items") or ()]


_CERTIFICATE: Final = {
    "certificateChainPath": "PodCertificate chain",
    "keyPath": "PodCertificate key",
    "credentialBundlePath": "PodCertificate credential bundle",
}


def _token(token: ReadOnlyTree) -> list[_File]:
    return [_File(token.get("path", "").rstrip("/"), "ServiceAccountToken")]


def _bundle(bundle: ReadOnlyTree) -> list[_File]:
    name = bundle.get("name") or bundle.get("signerName", "")
    return [_File(bundle.get("path", "").rstrip("/"), "ClusterTrustBundle", name)]


def _certificate(certificate: ReadOnlyTree) -> list[_File]:
    return [
        _File(certificate[field].rstrip("/"), source_type)
        for field, source_type in _CERTIFICATE.items()
        if certificate.get(field)
    ]


_PROJECTED: Final[Mapping[str, Callable[[ReadOnlyTree], list[_File]]]] = {
    "configMap": lambda source: _items(source, "ConfigMap", source.get("name", "")),
    "secret": lambda source: _items(source, "Secret", source.get("name", "")),
    "downwardAPI": lambda source: _items(source, "DownwardAPI"),
    "serviceAccountToken": _token,
    "clusterTrustBundle": _bundle,
    "podCertificate": _certificate,
}


def _projected_files(projection: ReadOnlyTree) -> list[_File]:
    """Return the files of one source of a projected volume."""
    for field, source in projection.items():
        if source and field in _PROJECTED:
            return _PROJECTED[field](source)
    return []

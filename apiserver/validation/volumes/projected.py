"""The volume that puts files of several sources together."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.file_paths import check_not_reserved
from apiserver.validation.rules import Check, Tree, every, pointer, required
from apiserver.validation.volumes.files import check_downward_file, check_key_to_path, check_mode

_LEAST_SECONDS, _MOST_SECONDS = 600, 1 << 32


def _check_expiration(token: Tree, path: Path) -> Iterator[FieldError]:
    seconds, path = token.get("expirationSeconds") or 0, path.child("expirationSeconds")
    if seconds < _LEAST_SECONDS:
        yield errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST_SECONDS:
        yield errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


_TOKEN_PATH: Final = required("path", check_not_reserved)
_ANY_TOKEN_PATH: Final = required("path")


_HEADS: Final[Mapping[str, Check]] = {
    "secret": required("name"),
    "configMap": required("name"),
    "downwardAPI": every(),
    "serviceAccountToken": _check_expiration,
}
"""What is said of a source before its files."""


def _check_file(kind: str, file: Tree, index: int, path: Path) -> Iterable[FieldError]:
    if kind == "downwardAPI":
        return check_downward_file(file, path)
    return check_key_to_path(file, path.child("items").index(index))


def _check_files(kind: str, source: Tree, path: Path, volume: Path, taken: set[str]) -> Iterator[FieldError]:
    """The files of a source, none of which may lie where that of another one does."""
    for index, file in enumerate(source.get("items", ())):
        yield from _check_file(kind, file, index, path)
        target = file.get("path")
        if target in taken:
            shown = target if kind == "downwardAPI" else source.get("name", "")
            yield errors.invalid(volume, shown, "conflicting duplicate paths")
        elif target:
            taken.add(target)


def _projected(token_path: Check) -> Check:
    def check(volume: Tree, path: Path) -> Iterator[FieldError]:
        yield from pointer("defaultMode", check_mode)(volume, path)
        taken: set[str] = set()
        for index, source in enumerate(volume.get("sources") or ()):
            at = path.child("sources").index(index)
            present = [kind for kind in _HEADS if source.get(kind) is not None]
            for kind in present:
                yield from _HEADS[kind](source[kind], at.child(kind))
                yield from _check_files(kind, source[kind], at.child(kind), path, taken)
            if source.get("serviceAccountToken") is not None:
                # Upstream tells of a token's path as if it were the volume's.
                yield from token_path(source["serviceAccountToken"], path)
            if len(present) > 1:
                yield errors.forbidden(at, "may not specify more than 1 volume type per source")

    return check


check_projected: Final = _projected(_TOKEN_PATH)
check_projected_leniently: Final = _projected(_ANY_TOKEN_PATH)
"""As the volume of an old object: a token's file may lie anywhere."""

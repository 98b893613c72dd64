"""The volume that puts files of several sources together."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.file_paths import check_not_reserved
from apiserver.validation.rules import Check, Tree, each, every, field, pointer, required
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


_KEYS: Final = every(required("name"), field("items", each(check_key_to_path)))

_CHECKS: Final[dict[str, Check]] = {
    "secret": _KEYS,
    "configMap": _KEYS,
    "downwardAPI": lambda source, path: (
        error for file in source.get("items", ()) for error in check_downward_file(file, path)
    ),
    "serviceAccountToken": _check_expiration,
}


def _projected(token_path: Check) -> Check:
    def check(volume: Tree, path: Path) -> Iterator[FieldError]:
        yield from pointer("defaultMode", check_mode)(volume, path)
        taken: set[str] = set()
        for index, source in enumerate(volume.get("sources") or ()):
            at = path.child("sources").index(index)
            present = [name for name in _CHECKS if source.get(name) is not None]
            for name in present:
                yield from _CHECKS[name](source[name], at.child(name))
                yield from _check_conflicts(source[name], taken, path)
            if source.get("serviceAccountToken") is not None:
                # Upstream tells of a token's path as if it were the volume's.
                yield from token_path(source["serviceAccountToken"], path)
            if len(present) > 1:
                yield errors.forbidden(at, "may not specify more than 1 volume type per source")

    return check


check_projected: Final = _projected(_TOKEN_PATH)
check_projected_leniently: Final = _projected(_ANY_TOKEN_PATH)
"""As the volume of an old object: a token's file may lie anywhere."""


def _check_conflicts(source: Tree, taken: set[str], path: Path) -> Iterator[FieldError]:
    """Refuse a file where another source has put one."""
    for item in source.get("items", ()):
        target = item.get("path")
        if target in taken:
            yield errors.invalid(path, source.get("name", target), "conflicting duplicate paths")
        elif target:
            taken.add(target)

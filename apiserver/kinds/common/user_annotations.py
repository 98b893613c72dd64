"""Annotations that a user passes to the signer of a pod's certificate."""

from collections.abc import Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

_MAX_BYTES: Final = 256 * 1024


def check_user_annotations(annotations: Mapping[str, str] | None, path: Path) -> Iterator[FieldError]:
    for key in annotations or ():
        yield from _check_key(key.lower(), path)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in (annotations or {}).items())
    if size > _MAX_BYTES:
        yield errors.too_long(path, _MAX_BYTES)


def _check_key(key: str, path: Path) -> Iterator[FieldError]:
    """Check that a key has the prefix of a domain."""
    if not key:
        yield errors.required(path)
        return
    problems = names.check_label_key(key)
    if not problems and key.count("/") != 1:
        problems = ['must be a domain-prefixed key (such as "acme.io/foo")']
    for problem in problems:
        yield errors.invalid(path, key, problem)

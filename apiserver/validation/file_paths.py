"""Paths of files and directories, where one could lead out of the place that it is meant to stay in."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.rules import every, must


def check_no_backsteps(target: str, path: Path) -> Iterator[FieldError]:
    if ".." in target.split("/"):
        yield errors.invalid(path, target, "must not contain '..'")


check_descending: Final = every(
    must(lambda target: not target.startswith("/"), "must be a relative path"), check_no_backsteps
)
"""A path that only goes down."""


def _check_not_reserved(target: str, path: Path) -> Iterator[FieldError]:
    if target.startswith("..") and not target.startswith("../"):
        yield errors.invalid(path, target, "must not start with '..'")


check_not_reserved: Final = every(check_descending, _check_not_reserved)
"""A path that only goes down, to a name that is nobody else's: the kubelet's own begin with two dots."""

"""Conditions of the type that newer kinds share."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree

from . import checks
from .objectmeta import check_label_name

_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


def check_reason_format(reason: str, path: Path) -> Iterator[FieldError]:
    if not re.fullmatch(_REASON, reason):
        rule = (
            "a condition reason must start with alphabetic character, optionally followed by a string of "
            "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
        )
        examples = (
            "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB',"
        )
        yield errors.invalid(path, reason, f"{rule} {examples} regex used for validation is '{_REASON}')")


_CONDITION: Final = checks.all_of(
    checks.require("type", check_label_name, detail="is required"),
    checks.require("status", checks.one_of("False", "True", "Unknown")),
    checks.optional(
        "observedGeneration",
        checks.require_that(lambda value: value >= 0, "must be greater than or equal to zero"),
    ),
    checks.require("lastTransitionTime"),
    checks.require("reason", check_reason_format, checks.max_bytes(1024)),
    checks.field("message", checks.max_bytes(32768), absent=""),
)


def check_conditions(conditions: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, condition in enumerate(conditions or ()):
        condition_path, kind = path.index(index), condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(condition_path, kind)
        seen.add(kind)
        yield from _CONDITION(condition, condition_path)

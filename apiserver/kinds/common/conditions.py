"""Conditions of the type that newer kinds share."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import (
    all_of,
    field,
    max_bytes,
    one_of,
    optional,
    require,
    require_that,
)
from mockube.apiserver.kinds.common.objectmeta import check_label_name

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


_CONDITION: Final = all_of(
    require("type", check_label_name, detail="is required"),
    require("status", one_of("False", "True", "Unknown")),
    optional(
        "observedGeneration", require_that(lambda value: value >= 0, "must be greater than or equal to zero")
    ),
    require("lastTransitionTime"),
    require("reason", check_reason_format, max_bytes(1024)),
    field("message", max_bytes(32768), absent=""),
)


def check_conditions(conditions: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, condition in enumerate(conditions or ()):
        condition_path, kind = path.index(index), condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(condition_path, kind)
        seen.add(kind)
        yield from _CONDITION(condition, condition_path)

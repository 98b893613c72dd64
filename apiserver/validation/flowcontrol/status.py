"""The status of FlowSchemas and PriorityLevelConfigurations."""

from collections.abc import Iterator, Sequence
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.kind import Update
from apiserver.validation.objects import part
from apiserver.validation.rules import Tree, field

EXEMPT: Final = "exempt"
"""The name of the schema and of the level of those who wait for nobody."""


def _check_conditions(conditions: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, condition in enumerate(conditions or ()):
        at, kind = path.index(index).child("type"), condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(at, kind)
        seen.add(kind)
        if not kind:
            yield errors.required(at, "must not be empty")


update_status: Final[Update] = part(field("conditions", _check_conditions), "status")

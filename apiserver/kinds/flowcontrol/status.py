"""Parts that FlowSchema and PriorityLevelConfiguration share: strategy, the exempt name, and validation of the status."""

from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import field
from mockube.apiserver.kinds.common.validation import Update, part
from mockube.apiserver.kinds.strategy import OWN_STATUS, SPEC, Request, Strategy

EXEMPT: Final = "exempt"
"""The name of the FlowSchema and of the level whose requests are never queued."""


def _keep_metadata(new: Tree, old: Tree, _request: Request) -> None:
    """Keep the old metadata in an update of the status, except for managedFields."""
    metadata = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
    if "managedFields" in new["metadata"]:
        metadata["managedFields"] = new["metadata"]["managedFields"]
    new["metadata"] = metadata


STRATEGY: Final = Strategy(
    resets=OWN_STATUS, generation=SPEC, first_generation=1, prepare_update={"status": _keep_metadata}
)


def _check_conditions(conditions: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, condition in enumerate(conditions or ()):
        at, kind = path.index(index).child("type"), condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(at, kind)
        seen.add(kind)
        if not kind:
            yield errors.required(at)


update_status: Final[Update] = part(field("conditions", _check_conditions), "status")

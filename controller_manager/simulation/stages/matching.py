"""Which stages an object is at: selectors of labels, annotations and queries, all of which have to hold.

Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.stages.document import Requirement, Stage


def stages_at(stages: Iterable[Stage], obj: Tree) -> list[Stage]:
    return [stage for stage in stages if is_at(stage, obj)]


def is_at(stage: Stage, obj: Tree) -> bool:
    return (
        _holds_all(stage.labels, meta.labels(obj))
        and _holds_all(stage.annotations, meta.annotations(obj))
        and all(_meets(requirement, obj) for requirement in stage.requirements)
    )


def _holds_all(wanted: Mapping[str, str], present: Mapping[str, str]) -> bool:
    return all(present.get(name) == value for name, value in wanted.items())


def _meets(requirement: Requirement, obj: Tree) -> bool:
    results = requirement.query(obj) or ()
    match requirement.operator:
        case "Exists":
            return _has_value(results)
        case "DoesNotExist":
            return not _has_value(results)
        case "In":
            return _is_among(results, requirement.values)
        case "NotIn":
            return not _is_among(results, requirement.values)


def _has_value(results: Sequence[Any]) -> bool:
    return any(result is not None for result in results)


def _is_among(results: Sequence[Any], values: frozenset[str]) -> bool:
    return any(_written(result) in values for result in results)


def _written(value: Any) -> str | None:
    """A value as a document names it; only texts, whole numbers and truth have such names."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None

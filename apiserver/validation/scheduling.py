"""PriorityClasses."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import METADATA
from apiserver.validation.objects import not_updated, together, unchanged
from apiserver.validation.rules import Tree, one_of, pointer, required

_SYSTEM: Final = "system-"
_SYSTEM_VALUES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_HIGHEST: Final = 1_000_000_000


def _system_problem(name: str, tree: Tree) -> str:
    """Why this is not the class of that name that Kubernetes makes itself."""
    value = _SYSTEM_VALUES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if tree.get("value", 0) != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if tree.get("globalDefault") else ""


def _check_value(tree: Tree) -> Iterable[FieldError]:
    name = meta.name(tree)
    if not name.startswith(_SYSTEM):
        if tree.get("value", 0) <= _HIGHEST:
            return ()
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        return (errors.forbidden(ROOT.child("value"), detail),)
    problem = _system_problem(name, tree)
    if not problem:
        return ()
    reserved = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only"
    return (errors.forbidden(METADATA.child("name"), f"{reserved}. error: {problem}"),)


_PREEMPTION: Final = pointer("preemptionPolicy", one_of("PreemptLowerPriority", "Never"))


def _create(tree: Tree) -> Iterator[FieldError]:
    yield from _check_value(tree)
    if tree.get("preemptionPolicy") == "":
        yield from required("preemptionPolicy")(tree, ROOT)
    else:
        yield from _PREEMPTION(tree, ROOT)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("scheduling.k8s.io", "PriorityClass"): Validation(
        create=_create,
        update=together(
            not_updated("value", "may not be changed in an update."), unchanged("preemptionPolicy")
        ),
    ),
}

"""PriorityClass."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import flag, number, text
from mockube.apiserver.kinds.common.checks import one_of, pointer, require
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import METADATA
from mockube.apiserver.kinds.common.validation import Validation, immutable_fields, in_order, not_updated
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_SYSTEM: Final = "system-"
_SYSTEM_VALUES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_MAX_USER_VALUE: Final = 1_000_000_000


def _system_problem(name: str, tree: ReadOnlyTree) -> str:
    """Return why this is not the system class of that name, or an empty text."""
    value = _SYSTEM_VALUES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if tree.get("value", 0) != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if tree.get("globalDefault") else ""


def _check_value(tree: ReadOnlyTree) -> Iterable[FieldError]:
    name = meta.name(tree)
    if not name.startswith(_SYSTEM):
        if tree.get("value", 0) <= _MAX_USER_VALUE:
            return ()
        detail = f"maximum allowed value of a user defined priority is {_MAX_USER_VALUE}"
        return (errors.forbidden(ROOT.child("value"), detail),)
    problem = _system_problem(name, tree)
    if not problem:
        return ()
    reserved = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only"
    return (errors.forbidden(METADATA.child("name"), f"{reserved}. error: {problem}"),)


_PREEMPTION: Final = pointer("preemptionPolicy", one_of("PreemptLowerPriority", "Never"))


def _create(tree: ReadOnlyTree) -> Iterator[FieldError]:
    yield from _check_value(tree)
    if tree.get("preemptionPolicy") == "":
        yield from require("preemptionPolicy")(tree, ROOT)
    else:
        yield from _PREEMPTION(tree, ROOT)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "value"),
        flag(tree, "globalDefault"),
        ages.age(tree, now),
        text(tree, "preemptionPolicy"),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="scheduling.k8s.io",
        version="v1",
        name="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short_names=("pc",),
    ),
    strategy=Strategy(
        first_generation=1,
        undeletable=dict.fromkeys(_SYSTEM_VALUES, "this is a system priority class and cannot be deleted"),
    ),
    validation=Validation(
        create=_create,
        update=in_order(
            not_updated("value", "may not be changed in an update."), immutable_fields("preemptionPolicy")
        ),
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Value", type="integer"),
            Column(name="Global-Default", type="boolean"),
            AGE_COLUMN,
            Column(name="PreemptionPolicy"),
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.scheduling.v1", {"PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"}}
    ),
)

"""Scale: the kind of the subresource `scale` of other kinds. It has columns only, and is not stored."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import number
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "spec", "replicas"),
        number(tree, "status", "replicas"),
        ages.age(tree, now),
    ]


def _custom_cells(tree: Tree, now: datetime) -> list[Any]:
    """Return the cells of a custom object's Scale: replicas that are 0, and so absent, are printed as null."""
    name, replicas, *others = _cells(tree, now)
    return [name, replicas or None, *others]


GROUP_KIND: Final = GroupKind("autoscaling", "Scale")

PRINTER: Final = Printer(
    columns=(
        Column(name="Name"),
        Column(name="Desired", type="integer"),
        Column(name="Available", type="integer"),
        AGE_COLUMN,
    ),
    cells=_cells,
)

CUSTOM_PRINTER: Final = Printer(
    columns=(
        NAME,
        Column(name="Desired", type="integer"),
        Column(name="Available", type="integer"),
        Column(name="Age", type="date"),
    ),
    cells=_custom_cells,
)
"""The printer of a custom object's Scale."""

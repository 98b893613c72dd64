"""Objects as the table that `kubectl get` prints.

The columns of a kind and their cells are its `Printer`, in the kind's file in `kinds/`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apimachinery.tree import Tree
from mockube.apiserver.wire import partial


class Column(Struct, frozen=True, kw_only=True):
    """A column; those of priority above 0 are only shown with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


NAME = Column(name="Name", format="name")
AGE = Column(name="Age")


class Printer(Struct, frozen=True, kw_only=True):
    """A kind's columns, and the cells of one object, as many as there are columns."""

    columns: Sequence[Column]
    cells: Callable[[Tree, datetime], list[Any]]
    conditions: Callable[[Tree], Sequence[Tree]] | None = None
    """What is to be known of a row besides its cells: that a pod has run to its end."""
    order: Callable[[Tree], Any] | None = None
    """What the rows are sorted by, where that is not their key."""
    has_no_rows: bool = False
    """Where there are no objects, there is no list of rows either."""


Printers: TypeAlias = Callable[[str, str], Printer]
"""By apiVersion and kind."""

INCLUDED = ("", "None", "Metadata", "Object")


def parse_include_object(text: str) -> str:
    """The query's `includeObject`, checked."""
    if text not in INCLUDED:
        problem = f"includeObject: Invalid value: \"{text}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return text


def make(
    printer: Printer, rows: Sequence[Tree], metadata: Mapping[str, Any], *, version: str, header: bool = True
) -> Tree:
    """The table of some rows, in a `meta.k8s.io` version; with `header` it has its column definitions."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in printer.columns] if header else None,
        "rows": rows,
    }


def row(printer: Printer, tree: Tree, *, now: datetime, version: str, include: str) -> Tree:
    """One object's; `include` is what of the object itself goes along."""
    conditions = printer.conditions(tree) if printer.conditions else ()
    row_conditions = {"conditions": conditions} if conditions else {}
    return {"cells": printer.cells(tree, now), **row_conditions, "object": _object(tree, version, include)}


def _definition(column: Column) -> Tree:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _object(tree: Tree, version: str, include: str) -> Tree | None:
    if include == "None":
        return None
    return tree if include == "Object" else partial.of(tree, version)

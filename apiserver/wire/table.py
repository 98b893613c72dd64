"""Objects as the table that `kubectl get` prints.

The columns of a kind and their cells are its `Printer`, in the kind's file in `kinds/`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apimachinery.tree import Tree

from . import partial


class Column(Struct, frozen=True, kw_only=True):
    """A column; `kubectl get` shows those with a priority above 0 with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


NAME = Column(name="Name", format="name")
AGE_COLUMN = Column(name="Age")


class Printer(Struct, frozen=True, kw_only=True):
    """The columns of a kind, and a function that returns the cells of an object."""

    columns: Sequence[Column]
    cells: Callable[[Tree, datetime], list[Any]]
    conditions: Callable[[Tree], Sequence[Tree]] | None = None
    """Returns the conditions of a row, such as that a pod has completed."""
    order: Callable[[Tree], Any] | None = None
    """Returns the sort key of a row; None: rows are sorted by their keys in the store."""
    of_list: "Callable[[Sequence[Tree]], Printer] | None" = None
    """Returns the printer of the objects of a list, whose cells depend on each other."""
    has_no_rows: bool = False
    """Whether an empty table has null in place of a list of rows."""


Printers: TypeAlias = Callable[[str, str], Printer]
"""Returns a printer by apiVersion and kind."""

INCLUDED = ("", "None", "Metadata", "Object")


def parse_include_object(text: str) -> str:
    """Return the query parameter `includeObject`, or raise BadRequest."""
    if text not in INCLUDED:
        problem = f"includeObject: Invalid value: \"{text}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return text


def make_table(
    printer: Printer, rows: Sequence[Tree], metadata: Mapping[str, Any], *, version: str, header: bool = True
) -> Tree:
    """Return a table of rows, in a version of `meta.k8s.io`; with `header` it has column definitions."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in printer.columns] if header else None,
        "rows": rows,
    }


def row(printer: Printer, tree: Tree, *, now: datetime, version: str, include: str) -> Tree:
    """Return the row of an object; `include` is the part of the object that the row contains."""
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
    return tree if include == "Object" else partial.to_partial_metadata(tree, version)

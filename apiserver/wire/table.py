"""Objects as the table that `kubectl get` prints.

What a kind's columns are, and what stands in them, a `Printer` says; they are written in `resources/columns`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from apimachinery import status
from apiserver.resources.spec import Resource
from apiserver.wire import partial

Tree: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; those of priority above 0 are only shown with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


NAME = Column(name="Name", format="name")
AGE = Column(name="Age")


@dataclass(frozen=True, slots=True, kw_only=True)
class Printer:
    """A kind's columns, and the cells of one object, as many as there are columns."""

    columns: Sequence[Column]
    cells: Callable[[Tree, datetime], list[Any]]


Printers: TypeAlias = Callable[[Resource], Printer]

INCLUDED = ("", "None", "Metadata", "Object")


def included(text: str) -> str:
    """The query's `includeObject`, checked."""
    if text not in INCLUDED:
        problem = f"includeObject: Invalid value: \"{text}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return text


def make(
    printer: Printer,
    trees: Sequence[Tree],
    metadata: Mapping[str, Any],
    *,
    now: datetime,
    include: str,
    version: str,
    header: bool,
) -> Tree:
    columns = [_definition(column) for column in printer.columns] if header else []
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": [
            {"cells": printer.cells(tree, now), "object": _object(tree, include, version)} for tree in trees
        ],
    }


def _definition(column: Column) -> Tree:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _object(tree: Tree, include: str, version: str) -> Tree | None:
    if include == "None":
        return None
    return tree if include == "Object" else partial.of(tree, version)

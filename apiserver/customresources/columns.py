"""The table columns of custom resources: those of the definition, or the age alone."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from mockube.apimachinery import gotext, jsonpath, meta
from mockube.apimachinery.jsonpath import JSONPathError
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree, sorted_keys
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.wire.table import NAME, Column, Printer

LOG = logging.getLogger(__name__)

Cell: TypeAlias = Callable[[Any, datetime], Any]
"""Formats a value for a table; only strings accept null."""

DEFAULT: Final = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)


def _integer(value: Any, _now: datetime) -> int | None:
    return int(value) if _is_number(value) else None


def _number(value: Any, _now: datetime) -> float | None:
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _boolean(value: Any, _now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return ages.since(parse_time(value), now)
    except ValueError:
        return "<invalid>"


def _string(value: Any, _now: datetime) -> str:
    if value is None:
        return "<no value>"
    return value if isinstance(value, str) else gotext.marshal(sorted_keys(value))


_CELLS: Final[Mapping[str, Cell]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "string": _string,
}


def printer(columns: Iterable[Mapping[str, Any]], owner: str = "") -> Printer:
    """Return a printer of the columns; as upstream, without the first one whose path is invalid and all after it."""
    headers, rows = [], []
    for column in tuple(columns) or DEFAULT:
        try:
            rows.append((jsonpath.parse(column["jsonPath"]), _CELLS[column["type"]]))
        except JSONPathError as error:
            LOG.warning(
                "%s is printed without the column %s and the columns after it: %s",
                owner,
                column["name"],
                error,
            )
            break
        headers.append(_column(column))

    def cells(tree: Tree, now: datetime) -> list[Any]:
        return [meta.name(tree), *(_cell(find(tree), format_value, now) for find, format_value in rows)]

    return Printer(columns=(NAME, *headers), cells=cells)


def _cell(values: Sequence[Any], format_value: Cell, now: datetime) -> Any:
    """Return the text of the first value, as upstream."""
    return (
        format_value(values[0], now)
        if values and (values[0] is not None or format_value is _string)
        else None
    )


def _column(column: Mapping[str, Any]) -> Column:
    described = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return Column(
        name=column["name"],
        type=column["type"],
        format=column.get("format", ""),
        description=column.get("description") or described,
        priority=column.get("priority", 0),
    )

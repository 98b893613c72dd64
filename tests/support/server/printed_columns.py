"""The printed columns of an object, by name."""

from datetime import UTC, datetime, timedelta

from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.kinds.built_in_kinds import printer_of_kind

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def printed_cells(group, kind, tree):
    """Return the cells of an object named x that is five minutes old."""
    metadata = {"name": "x", "creationTimestamp": time_ago(minutes=5)} | tree.get("metadata", {})
    printer = printer_of_kind(GroupKind(group, kind))
    cells = printer.cells({**tree, "metadata": metadata}, NOW)
    return {column.name: cell for column, cell in zip(printer.columns, cells, strict=True)}


def time_ago(**span):
    """Return a timestamp before NOW."""
    return format_time(NOW - timedelta(**span))

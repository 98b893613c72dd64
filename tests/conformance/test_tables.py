"""Tables of a real server, compared with tables made from the objects that it returned, and kubectl's output of tables.

Times, addresses and similar values in the objects are blanked out, so cells are compared after the same replacement.
"""

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.built_in_kinds import GROUPS, printer_of_kind
from tests.support.recorded import recordings

NOW = datetime(2030, 1, 2, 3, 5, 5, tzinfo=UTC)

BLANKS = (
    (re.compile(r"(\d+[smhdy])+|<unknown>|<invalid>"), "<age>"),
    (re.compile(r"10\.\d+\.\d+\.\d+"), "<ip>"),
    (recordings.TIME, "<time>"),
)

CATALOG = {(row.group, row.version, row.name): row for group in GROUPS for row in group.resources}
PATH = re.compile(r"/(?:api|apis/([^/]+))/([^/]+)/(?:namespaces/[^/]+/)?([^/?]+)")


class Table(NamedTuple):
    """A recorded table, and the last recorded object of each row."""

    resource: Resource
    columns: list[tuple[Any, ...]]
    rows: list[list[Any]]
    objects: list[Any]


def resource_of(path):
    """Return the row of the catalog that a request is for, if there is one."""
    match = PATH.match(path)
    return CATALOG.get(tuple(match.groups(""))) if match else None


def tables_of(case):
    seen = {}
    for number, (request, response) in enumerate(recordings.steps(case)):
        resource, body = resource_of(request["path"]), response.get("body")
        for tree in recordings.trees(body):
            if tree.get("kind") == "Table" and resource is not None:
                yield pytest.param(table_of(resource, tree, seen), id=f"{case['id']} {number}")
            for item in tree.get("items", [tree]):
                seen[resource, item.get("metadata", {}).get("name")] = item


def table_of(resource, tree, seen):
    columns = [
        (column["name"], column["type"], column["format"], column["priority"])
        for column in tree["columnDefinitions"]
    ]
    name = next(index for index, column in enumerate(columns) if column[2] == "name")
    rows = [row["cells"] for row in tree["rows"]]
    return Table(resource, columns, rows, [seen.get((resource, cells[name])) for cells in rows])


def tables():
    cases = [param.values[0] for param in recordings.cases()]
    return [table for case in cases for table in tables_of(case)]


@pytest.fixture(params=tables())
def table(request):
    return request.param


def with_blank(cell):
    if not isinstance(cell, str):
        return cell
    return next((blank for pattern, blank in BLANKS if pattern.fullmatch(cell)), cell)


def test_table_columns_match_recording(table):
    assert table.columns == [
        (column.name, column.type, column.format, column.priority)
        for column in printer_of_kind(table.resource.group_kind).columns
    ]


def test_table_cells_match_recording(table):
    cells = [
        printer_of_kind(table.resource.group_kind).cells(recordings.filled_in(tree), NOW)
        for tree in table.objects
    ]
    assert [[with_blank(cell) for cell in row] for row in cells] == table.rows


# --- output of kubectl


def headers():
    """Yield each kind of table that kubectl printed, as (its arguments, the row of the catalog, its first line)."""
    cases = [param.values[0] for param in recordings.cases("kubectl/sessions.jsonl")]
    steps = [step for case in cases for step in case["steps"]]
    found = {
        header: pytest.param(header, id=" ".join(header[::2]))
        for step in steps
        for header in headers_of(step)
    }
    return [*found.values()]


def headers_of(step):
    asked = re.match(r"kubectl get ([a-z,]+)(?: [a-z]\S*)?$", step["cmd"])
    if asked is None or step["rc"]:
        return
    for block in filter(None, step["out"].split("\n\n")):
        line, first, *_ = block.splitlines()
        # In a table of several kinds, each row has its kind: `role.rbac.authorization.k8s.io/reader`.
        name = re.match("[a-z]+", first)[0] if "," in asked[1] else asked[1]
        resource = next((row for row in CATALOG.values() if name in names_of(row)), None)
        if resource is not None:
            yield name, resource, line


def names_of(resource):
    return resource.name, resource.singular_name, *resource.short_names


@pytest.fixture(params=headers())
def header(request):
    return request.param


def test_kubectl_prints_column_headers_of_table(header):
    _, resource, line = header
    shown = [
        column.name.upper() for column in printer_of_kind(resource.group_kind).columns if column.priority == 0
    ]
    assert " ".join(shown) == line

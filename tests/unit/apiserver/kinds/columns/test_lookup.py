"""The printer of each kind, and tables with what printers provide besides cells."""

import pytest

from mockube.apimachinery.groups import GroupKind
from mockube.apiserver.kinds import built_in_kinds as lookup
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.wire import table
from tests.support.server.printed_columns import NOW, printed_cells, time_ago

CATALOG = [row for group in GROUPS for row in group.resources]
NETWORKING = "networking.k8s.io"

DEFAULTS = {
    "binding", "clusterrole", "csistoragecapacity", "limitrange",
    "localsubjectaccessreview", "role", "selfsubjectaccessreview", "selfsubjectreview", "selfsubjectrulesreview",
    "subjectaccessreview", "tokenreview",
}  # fmt: skip


def test_every_printer_has_an_existing_kind():
    simulated = {GroupKind("metrics.k8s.io", kind) for kind in ("NodeMetrics", "PodMetrics")}
    kinds = {row.group_kind for row in CATALOG} | {GroupKind("autoscaling", "Scale")} | simulated
    assert lookup.NEWEST.printers.keys() <= kinds


def test_kinds_without_printer_have_default():
    assert {
        row.singular_name for row in CATALOG if lookup.printer_of_kind(row.group_kind) is lookup.DEFAULT
    } == DEFAULTS


def test_default_printer_has_name_and_creation_time():
    assert printed_cells(NETWORKING, "Unheard", {"metadata": {"creationTimestamp": time_ago(hours=1)}}) == {
        "Name": "x",
        "Created At": "2030-01-02T02:04:05Z",
    }
    assert (
        printed_cells("", "Unheard", {"metadata": {"creationTimestamp": None}})["Created At"]
        == "0001-01-01T00:00:00Z"
    )


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.api_version}/{row.name}") for row in CATALOG])
def test_printers_have_name_column_and_cell_per_column(row):
    printer = lookup.printer_of_kind(row.group_kind)
    more = {"ipaddresses": 1}.get(row.name, 0)
    assert len(printer.cells({}, NOW)) == len(printer.columns) + more
    name = next((column.name for column in printer.columns if column.format == "name"), "")
    assert name == ("" if row.name == "storageversionmigrations" else "Name")


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        pytest.param(None, "<none>", id="without owner"),
        pytest.param(
            {"resource": "Services", "namespace": "ns", "name": "web"}, "services/ns/web", id="a service's"
        ),
        pytest.param(
            {"group": "g.io", "resource": "widgets", "name": "w"}, "widgets.g.io/w", id="without namespace"
        ),
    ],
)
def test_ip_address_age_cell_has_no_column(parent, expected):
    printer = lookup.printer_of_kind(GroupKind(NETWORKING, "IPAddress"))
    tree = {
        "metadata": {"name": "10.0.0.1", "creationTimestamp": time_ago(minutes=5)},
        "spec": {"parentRef": parent},
    }
    assert printer.cells(tree, NOW) == ["10.0.0.1", expected, "5m"]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Running", None),
        (
            "Succeeded",
            [
                {
                    "type": "Completed",
                    "status": "True",
                    "reason": "Succeeded",
                    "message": "The pod has completed successfully.",
                }
            ],
        ),
        (
            "Failed",
            [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
        ),
    ],
)
def test_row_of_finished_pod_has_completed_condition(phase, expected):
    printer = lookup.printer_of_kind(GroupKind("", "Pod"))
    row = table.row(printer, {"status": {"phase": phase}}, now=NOW, version="v1", include="None")
    assert row.get("conditions") == expected


def test_flow_schemas_are_sorted_by_precedence():
    trees = [
        {"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}}
        for name, precedence in [("a", 900), ("z", 1), ("c", 5), ("b", 5)]
    ]
    order = lookup.printer_of_kind(GroupKind("flowcontrol.apiserver.k8s.io", "FlowSchema")).order
    assert [tree["metadata"]["name"] for tree in sorted(trees, key=order)] == ["z", "b", "c", "a"]


def test_table_without_headers_has_null_columns():
    """Later events of a watch have null columns too."""
    made = table.make_table(lookup.DEFAULT, [], {}, version="v1", header=False)
    assert made["columnDefinitions"] is None
    assert table.make_table(lookup.DEFAULT, [], {}, version="v1")["columnDefinitions"][0]["name"] == "Name"

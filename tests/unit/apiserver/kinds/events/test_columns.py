"""Printer columns of Events, with the field names of both groups."""

import pytest

from tests.support.server.printed_columns import printed_cells, time_ago

CORE, EVENTS = "", "events.k8s.io"


def micro_time_ago(**span):
    return time_ago(**span).replace("Z", ".000000Z")


@pytest.mark.parametrize(
    ("group", "tree"),
    [
        pytest.param(
            CORE,
            {
                "firstTimestamp": time_ago(hours=9),
                "lastTimestamp": time_ago(minutes=1),
                "count": 4,
                "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{main}"},
                "source": {"component": "kubelet", "host": "n1"},
                "message": " Back-off\n",
            },
            id="core",
        ),
        pytest.param(
            EVENTS,
            {
                "deprecatedFirstTimestamp": time_ago(hours=9),
                "deprecatedLastTimestamp": time_ago(minutes=1),
                "deprecatedCount": 4,
                "regarding": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{main}"},
                "deprecatedSource": {"component": "kubelet", "host": "n1"},
                "note": " Back-off\n",
            },
            id="events.k8s.io",
        ),
    ],
)
def test_old_form_of_event_columns(group, tree):
    assert printed_cells(group, "Event", tree | {"type": "Warning", "reason": "BackOff"}) == {
        "Last Seen": "60s",
        "Type": "Warning",
        "Reason": "BackOff",
        "Object": "pod/web",
        "Subobject": "spec.containers{main}",
        "Source": "kubelet, n1",
        "Message": "Back-off",
        "First Seen": "9h",
        "Count": 4,
        "Name": "x",
    }


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param({}, ("<unknown>", "<unknown>", 1), id="never"),
        pytest.param({"eventTime": micro_time_ago(minutes=2)}, ("2m", "2m", 1), id="once"),
        pytest.param({"firstTimestamp": time_ago(minutes=3)}, ("3m", "3m", 1), id="first only"),
        pytest.param(
            {
                "eventTime": micro_time_ago(hours=9),
                "series": {"count": 7, "lastObservedTime": micro_time_ago(minutes=2)},
            },
            ("2m", "9h", 7),
            id="in a series",
        ),
        pytest.param(
            {"eventTime": micro_time_ago(hours=9), "count": 3, "series": {"count": 0}},
            ("<unknown>", "9h", 0),
            id="empty series",
        ),
    ],
)
def test_event_times_and_count_columns(times, expected):
    cells = printed_cells(CORE, "Event", times)
    assert (cells["Last Seen"], cells["First Seen"], cells["Count"]) == expected


@pytest.mark.parametrize(
    ("group", "controller"), [(CORE, "reportingComponent"), (EVENTS, "reportingController")]
)
def test_event_reporter_is_shown_without_source(group, controller):
    tree = {controller: "kubelet", "reportingInstance": "n1"}
    assert printed_cells(group, "Event", tree)["Source"] == "kubelet, n1"
    assert printed_cells(group, "Event", {controller: "kubelet"})["Source"] == "kubelet"


def test_event_object_without_name_is_its_kind():
    assert printed_cells(CORE, "Event", {"involvedObject": {"kind": "Node"}})["Object"] == "node"

"""What `mockube top` shows of what it read."""

from mockube.top.readings import Node, Pods, Reading, Unreadable, Usage, node_of, pods_of, usage_of
from mockube.top.requests import CUT, SentRequest, count_requests, request_of
from mockube.top.screen import lines, rows_that_fit, sections

NODES = [
    Node(name="idle", state="Ready", cpu=4, memory=8 * 2**30),
    Node(name="busy", state="Ready", cpu=4, memory=8 * 2**30),
    Node(name="away", state="NotReady", cpu=4, memory=8 * 2**30),
]
USAGE = {"idle": Usage(0.1, 2**20), "busy": Usage(2, 4 * 2**30)}


def controller(name, *, adds=0, depth=0, retries=0, newest=()):
    numbers = {"depth": depth, "adds": adds, "retries": retries, "running": 0, "longestRunningSeconds": 0}
    status = {**numbers, "reconciliations": 2, "seconds": 0.5, "waitSeconds": 0, "newest": list(newest)}
    return {"metadata": {"name": name}, "status": status}


def reading(time=10.0, **others):
    pods = Pods(by_status={"Pending": 2, "Running": 3}, by_node={"busy": 3})
    return Reading(
        **{"time": time, "nodes": NODES, "usage": USAGE, "pods": pods, "controllers": [], **others}
    )


def text(reading, before=None, requests=(), rows=10):
    shown = sections(reading, before, requests)
    return [line.text for line in lines(shown, [rows] * len(shown))]


def test_rows_that_are_left_out_are_counted():
    found = text(reading(), rows=2)
    assert found[0] == "Nodes: 2 Ready, 1 NotReady (2 of 3 rows)"
    assert text(reading(), rows=3)[0] == "Nodes: 2 Ready, 1 NotReady"


def row(found, name):
    return next(line.split() for line in found if name in line)


def test_nodes_in_trouble_come_first_and_then_busy_ones():
    found = text(reading())
    assert found[0] == "Nodes: 2 Ready, 1 NotReady"
    assert [line.split()[0] for line in found[2:5]] == ["away", "busy", "idle"]
    assert row(found, "busy") == ["busy", "Ready", "2000m", "50%", "4096Mi", "50%", "3"]
    assert row(found, "away") == ["away", "NotReady", "-", "-", "-", "-", "0"]


def test_pods_are_counted_by_status():
    assert "Pods: 3 Running, 2 Pending" in text(reading())


def test_unreadable_section_is_named_and_the_rest_is_shown():
    found = text(reading(usage=Unreadable("no metrics"), pods=Unreadable("forbidden")))
    assert found[0].endswith("; usage is not shown: no metrics")
    assert found[found.index("Pods") + 1] == "  not shown: forbidden"
    assert row(found, "busy")[:2] == ["busy", "Ready"]


def test_rates_are_those_since_the_reading_before():
    before = reading(time=8.0, controllers=[controller("job", adds=10), controller("new", adds=9)])
    now = reading(
        time=10.0, controllers=[controller("job", adds=15, retries=1, depth=7), controller("new", adds=1)]
    )
    found = text(now, before)
    assert row(found, "job") == ["job", "7", "0", "2.5", "0.5", "1", "250.0ms", "-"]
    assert row(found, "new")[3:5] == ["-", "-"]  # the manager was started again
    assert "Queues: 2, in which 7 keys wait" in found


def test_slowest_reconciliations_come_first_with_what_they_did():
    quick = {
        "name": "a",
        "namespace": "shop",
        "seconds": 0.001,
        "result": "success",
        "actions": ["create pods: 2"],
    }
    slow = {"name": "b", "seconds": 1.5, "result": "error", "error": "no\nline"}
    found = text(reading(controllers=[controller("job", newest=[quick, slow])]))
    assert [line.split() for line in found[-2:]] == [
        ["1.50s", "job", "b", "error", "no\\nline"],
        ["1.0ms", "job", "shop/a", "success", "create", "pods:", "2"],
    ]


def test_requests_are_counted_by_client_verb_and_code():
    def sent(**others):
        return SentRequest(
            **{"time": 0.0, "client": "bob", "verb": "get", "code": 200, "seconds": 0.01, **others}
        )

    requests = [sent(), sent(seconds=0.03), sent(code=409), sent(verb="watch", seconds=900), sent(code=CUT)]
    found = text(reading(), requests=count_requests(requests))
    assert "Requests of the last 60 seconds: 5, of which 2 failed" in found
    assert [line.split() for line in found if "bob" in line] == [
        ["bob", "get", "200", "2", "20.0ms", "30.0ms"],
        ["bob", "get", "cut", "1", "10.0ms", "10.0ms"],
        ["bob", "get", "409", "1", "10.0ms", "10.0ms"],
        ["bob", "watch", "200", "1", "-", "-"],
    ]


def test_rows_share_the_height_of_the_screen():
    shown = sections(reading(controllers=[controller(f"queue-{number}") for number in range(50)]), None, [])
    rows = rows_that_fit(shown, 30)
    assert rows[0] == len(NODES)
    assert len(lines(shown, rows)) == 30
    assert rows_that_fit(shown, 1) == [2, 0, 2, 0, 0]


def test_request_in_progress_is_not_counted_and_one_without_a_response_is():
    spec = {"time": "2026-11-28T17:54:08.330421Z", "verb": "get"}
    assert request_of({"spec": spec}) is None
    left = request_of({"spec": spec, "status": {"seconds": 9.0}})
    assert [
        line.split() for line in text(reading(), requests=count_requests([left])) if "nobody" in line
    ] == [["(nobody)", "get", "-", "1", "9.00s", "9.00s"]]
    found = request_of({"spec": spec, "status": {"code": 404, "seconds": 0.5}})
    assert (found.client, found.code, found.seconds) == ("(nobody)", 404, 0.5)


def test_objects_of_the_api_are_read():
    spec, ready = {"unschedulable": True}, [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {"cpu": "500m", "memory": "1Gi"}, "conditions": ready}
    assert node_of({"metadata": {"name": "a"}, "spec": spec, "status": status}) == Node(
        name="a", state="Ready,SchedulingDisabled", cpu=0.5, memory=2**30
    )
    assert usage_of({"usage": {"cpu": "250m", "memory": "2Mi"}}) == Usage(0.25, 2 * 2**20)
    columns = [{"name": "Name"}, {"name": "Status"}, {"name": "Node"}]
    rows = [{"cells": ["a", "Running", "node-1"]}, {"cells": ["b", "Pending", "<none>"]}]
    found = pods_of({"columnDefinitions": columns, "rows": rows})
    assert (found.by_status, found.by_node["node-1"]) == ({"Running": 1, "Pending": 1}, 1)

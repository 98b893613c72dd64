"""The journal of a node by the Events and the pods of the API."""

from datetime import timedelta

import pytest

from mockube.apimachinery.timestamps import parse_time
from mockube.kubelet.node_machine import journal

AT = "2026-01-01T00:00:01Z"
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
    "spec": {},
    "status": {
        "startTime": AT,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"}],
        "containerStatuses": [
            {
                "name": "c",
                "state": {
                    "waiting": {"message": "back-off 10s restarting failed container=c pod=web_default(u1)"}
                },
            }
        ],
    },
}


def event(reason, message, kind="Warning", host="node-1"):
    about = {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "u1",
        "fieldPath": "spec.containers{c}",
    }
    return {
        "involvedObject": about, "reason": reason, "message": message, "type": kind, "source": {"component": "kubelet", "host": host},
        "firstTimestamp": AT, "lastTimestamp": AT,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "message", "line"),
    [
        ("Unhealthy", "Readiness probe failed: no", '"Probe failed" probeType="Readiness" pod="default/web" podUID="u1" containerName="c" probeResult="failure" output="no"'),
        ("BackOff", "Back-off restarting failed container c in pod web_default(u1)", 'with CrashLoopBackOff: \\"back-off 10s restarting failed container=c'),
        ("Failed", 'Failed to pull image "x": rpc error: no', '"PullImage from image service failed" err="rpc error: no" image="x"'),
        ("FailedMount", "no volume", '"Error syncing pod, skipping" err="FailedMount: no volume"'),
    ],
)  # fmt: skip
def test_event_is_a_line_of_the_kubelet(reason, message, line):
    entries = journal.event_entries([event(reason, message)], "node-1", {"u1": POD})
    texts = [entry.text for entry in entries if entry.unit == "kubelet.service"]
    assert [line in text for text in texts] == [True]


def test_events_of_other_nodes_are_left_out():
    assert journal.event_entries([event("Unhealthy", "x", host="node-2")], "node-1", {}) == []


def test_lines_of_the_runtime_are_in_its_unit():
    entries = journal.event_entries([event("Pulling", 'Pulling image "x"', "Normal")], "node-1", {})
    assert {entry.unit for entry in entries} == {"kubelet.service", "containerd.service"}


def test_pods_begin_and_become_ready():
    first, second = journal.pod_entries([POD])
    assert '"SyncLoop ADD" source="api" pods=["default/web"]' in first.text
    assert second.text.endswith("podStartSLOduration=3")


def test_kubelet_that_ends_is_started_every_ten_seconds():
    since = parse_time(AT)
    entries = [
        *journal.failure_entries(
            '"command failed" err="x"', "1/FAILURE", since, since + timedelta(seconds=25)
        )
    ]
    assert [entry.at.second for entry in entries if "command failed" in entry.text] == [1, 11, 21]
    assert "restart counter is at 2" in " ".join(entry.text for entry in entries)
    many = [*journal.failure_entries("x", "1/FAILURE", since, since + timedelta(days=365))]
    assert len(many) < 100


def test_kubelet_without_an_api_server_says_which_address_refuses():
    since = parse_time(AT)
    entries = [*journal.cut_off_entries("https://10.0.0.9:64433", "node-1", since, since)]
    assert all("dial tcp 10.0.0.9:64433: connect: connection refused" in entry.text for entry in entries)

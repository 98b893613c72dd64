"""Events that kubelets record for their nodes, and their rate limit."""

import asyncio

import pytest

from mockube.client.cache.store import Change
from mockube.component_base.clock import SteppedClock
from mockube.kubelet.node_events import NodeEvents, node_events
from mockube.kubelet.volumes.host_paths import path_type
from tests.support.event_loop import yield_to_loop

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node(name="n", *, ready="True", boot="b1", silent=False, uid="u", **changes):
    """Return a node; `MemoryPressure="True"` sets a condition, `unschedulable=True` cordons it."""
    statuses = {**dict.fromkeys(PRESSURES, "False"), "Ready": ready, **changes}
    unschedulable = statuses.pop("unschedulable", False)
    annotations = {
        "kwok.x-k8s.io/node": "fake",
        **({"mockube.dev/stop-heartbeats": "true"} if silent else {}),
    }
    conditions = [{"type": kind, "status": status} for kind, status in statuses.items() if status]
    return {
        "metadata": {"name": name, "uid": uid, "annotations": annotations},
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": {"conditions": conditions, "nodeInfo": {"bootID": boot}},
    }


def reasons(old, new):
    return [event.reason for event in node_events(old, new)]


STARTED = [
    "Starting",
    "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure",
    "NodeHasSufficientPID",
    "NodeAllocatableEnforced",
]


def test_starting_kubelet_records_events():
    recorded = node_events(None, node(ready="False"))
    assert [event.reason for event in recorded] == STARTED
    assert {event.type for event in recorded} == {"Normal"}
    assert [event.message for event in recorded[:2]] == [
        "Starting kubelet.",
        "Node n status is now: NodeHasSufficientMemory",
    ]
    assert recorded[-1].message == "Updated Node Allocatable limit across pods"


def test_node_without_status_records_start_events_once():
    bare = {"metadata": {"name": "n"}, "spec": {}}
    assert reasons(None, bare) == STARTED
    assert reasons(bare, node()) == ["NodeReady"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, []),
        ({"ready": "False"}, {}, ["NodeReady"]),
        ({"ready": "Unknown"}, {}, ["NodeReady"]),
        ({}, {"ready": "False"}, ["NodeNotReady"]),
        ({}, {"ready": "Unknown"}, []),
        ({}, {"MemoryPressure": "True"}, ["NodeHasInsufficientMemory"]),
        ({"MemoryPressure": "True"}, {}, ["NodeHasSufficientMemory"]),
        ({"MemoryPressure": "Unknown"}, {}, ["NodeHasSufficientMemory"]),
        (
            {},
            {"DiskPressure": "True", "PIDPressure": "True"},
            ["NodeHasDiskPressure", "NodeHasInsufficientPID"],
        ),
        ({}, {"unschedulable": True}, ["NodeNotSchedulable"]),
        ({"unschedulable": True}, {}, ["NodeSchedulable"]),
        ({}, {"boot": "b2"}, ["Rebooted"]),
        ({"boot": ""}, {"boot": "b2"}, []),
    ],
)
def test_condition_changes_record_events(old, new, expected):
    assert reasons(node(**old), node(**new)) == expected


def test_unschedulable_node_records_event_at_start():
    assert reasons(None, node(unschedulable=True)) == [*STARTED[:-1], "NodeNotSchedulable", STARTED[-1]]


def test_reboot_records_warning_with_boot_id():
    (event,) = node_events(node(), node(boot="b2"))
    assert (event.type, event.message) == ("Warning", "Node n has been rebooted, boot id: b2")


class Recorder:
    def __init__(self):
        self.recorded = []

    def record_on(self, host, about, kind, reason, message):
        self.recorded.append((host, about, kind, reason, message))


async def events_and_counts(recorder, clock, *changes, later=()):
    """Return the Events of the changes, and the number of Events after each period in `later`."""
    events = NodeEvents(recorder, clock)
    for old, new in changes:
        events.on_change(Change(old, new))
    task = asyncio.create_task(events.run())
    await yield_to_loop(2)
    recorded = [one[3] for one in recorder.recorded]
    counts = []
    for seconds in later:
        for _ in range(round(seconds * 50)):
            clock.advance(1 / 50)
            await yield_to_loop(2)
        counts.append(len(recorder.recorded))
    task.cancel()
    return recorded, counts


def events_of(*changes):
    recorder = Recorder()
    recorded, _ = asyncio.run(events_and_counts(recorder, SteppedClock(), *changes))
    return recorded, recorder.recorded


def test_events_of_starting_nodes_are_rate_limited():
    changes = [(None, node(f"n{number}", uid=str(number))) for number in range(40)]
    recorded, counts = asyncio.run(events_and_counts(Recorder(), SteppedClock(), *changes, later=(1, 1)))
    assert (len(recorded), *counts) == (100, 150, 200)


def test_foreign_or_stopped_nodes_record_no_events():
    real = {**node(), "metadata": {"name": "real", "uid": "r"}}
    assert events_of((None, real), (node(), node(silent=True, ready="False")), (node(), None))[0] == []


@pytest.mark.parametrize(
    ("version", "uid"),
    [("", {}), ("v1.36.3", {}), ("v1.37.2", {"uid": "u"}), ("v1.38.0", {"uid": "u"}), ("fake", {})],
)
def test_event_of_newer_kubelet_has_uid_of_node(version, uid):
    cordoned = node(unschedulable=True)
    cordoned["status"]["nodeInfo"]["kubeletVersion"] = version
    recorded = events_of((node(), cordoned))[1]
    about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", **uid}}
    message = "Node n status is now: NodeNotSchedulable"
    assert recorded == [("n", about, "Normal", "NodeNotSchedulable", message)]


def test_recreated_node_has_new_kubelet():
    assert events_of((node(), node(uid="v")))[0] == STARTED
    other = {**node(), "metadata": {"name": "n", "uid": "u"}}
    assert events_of((other, node()))[0] == STARTED


def with_host_paths(text):
    described = node()
    described["metadata"]["annotations"]["mockube.dev/host-paths"] = text
    return described


def test_invalid_host_path_of_annotation_is_reported_once():
    changed = with_host_paths("/data, /dev/sdb=BlockDevise, relative")
    problems = [event.message for event in node_events(node(), changed)]
    types = "Directory, File, Socket, CharDevice, BlockDevice"
    assert problems == [
        f"mockube.dev/host-paths: /dev/sdb=BlockDevise: the type must be one of {types}",
        "mockube.dev/host-paths: 'relative': must be an absolute path",
    ]
    assert [event.type for event in node_events(None, changed)][-2:] == ["Warning"] * 2
    assert node_events(changed, changed) == []
    assert node_events(changed, with_host_paths("/data, relative")) == []


def test_invalid_host_path_does_not_exist():
    described = with_host_paths("/x=Directry, /y=Socket")
    assert [path_type(path, described, ()) for path in ("/x", "/y")] == ["", "Socket"]

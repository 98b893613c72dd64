"""Node health: detection of silent nodes, their conditions and taints, and the eviction rate of a zone."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Store
from mockube.client.resources import Key
from mockube.controller_manager.controllers.nodelifecycle.health import is_silent, observe, unknown_conditions
from mockube.controller_manager.controllers.nodelifecycle.taints import (
    with_no_execute_taint,
    with_no_schedule_taints,
)
from mockube.controller_manager.controllers.nodelifecycle.zones import (
    BY_ZONE,
    EvictionLimits,
    Zone,
    ZoneSize,
    ZoneState,
    rate_of,
    sizes_of,
    state_of,
    zone_and_readiness,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GRACE = timedelta(seconds=50)
LIMITS = EvictionLimits(rate=0.1, slow_rate=0.01, threshold=0.55, large=50)


def time_after(seconds):
    return NOW + timedelta(seconds=seconds)


def node(ready="True", *, heartbeat="a", taints=(), labels=None, **others):
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}]
    conditions += [
        {"type": name, "status": status} for name, status in others.items() if name != "unschedulable"
    ]
    return {
        "metadata": {"name": "n", "creationTimestamp": format_time(NOW), "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": others.get("unschedulable", False)},
        "status": {"conditions": conditions},
    }


def lease(text):
    return {"spec": {"renewTime": text}}


def health_after(*looks):
    health = None
    for seconds, seen, renewed in looks:
        health = observe(health, seen, lease(renewed) if renewed else None, time_after(seconds))
    return health


@pytest.mark.parametrize(
    ("looks", "now", "silent"),
    [
        pytest.param([(0, node(), None)], 50, False, id="within the grace period"),
        pytest.param([(0, node(), None)], 51, True, id="beyond the grace period"),
        pytest.param([(0, node(), None), (40, node(heartbeat="b"), None)], 90, False, id="status renewed"),
        pytest.param([(0, node(), "1"), (40, node(), "2")], 90, False, id="Lease renewed"),
        pytest.param([(0, node(), "1"), (40, node(), "1")], 51, True, id="Lease not renewed"),
        pytest.param([(0, node(), "1"), (40, node(), None)], 51, True, id="Lease deleted"),
        pytest.param([(0, node(None), None)], 60, False, id="new node within the startup grace period"),
        pytest.param([(0, node(None), None)], 61, True, id="new node beyond the startup grace period"),
        pytest.param([(100, node(None), None)], 101, True, id="old node without status"),
        pytest.param([(100, node(None), "1")], 150, False, id="Lease renewed without status"),
        pytest.param(
            [(0, node(None), None), (55, node(), None)], 105, False, id="first status after a delay"
        ),
    ],
)
def test_node_without_heartbeats_is_detected(looks, now, silent):
    assert is_silent(health_after(*looks), time_after(now), GRACE) is silent


def test_conditions_of_node_without_heartbeats_become_unknown():
    changes = unknown_conditions(node(MemoryPressure="False", DiskPressure="Unknown"), NOW)
    stopped = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert [(c["type"], c["status"], c["reason"], c["message"]) for c in changes] == [
        ("Ready", "Unknown", *stopped),
        ("MemoryPressure", "Unknown", *stopped),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status."),
    ]
    assert changes[2]["lastHeartbeatTime"] == format_time(NOW)


def test_unknown_conditions_are_not_written_again():
    every = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "Unknown")
    assert unknown_conditions(node("Unknown", **every), NOW) == []


def taint(key, effect="NoSchedule", **fields):
    return {"key": key, "effect": effect, **fields}


NEW = {"timeAdded": format_time(NOW)}


@pytest.mark.parametrize(
    ("seen", "taints"),
    [
        pytest.param(node(), None, id="healthy"),
        pytest.param(node("False"), [taint("node.kubernetes.io/not-ready", **NEW)], id="not ready"),
        pytest.param(node("Unknown"), [taint("node.kubernetes.io/unreachable", **NEW)], id="unknown"),
        pytest.param(
            node(taints=[taint("node.kubernetes.io/not-ready"), taint("mine")]),
            [taint("mine")],
            id="ready again",
        ),
        pytest.param(
            node(
                MemoryPressure="True", unschedulable=True, taints=[taint("node.kubernetes.io/unschedulable")]
            ),
            [taint("node.kubernetes.io/unschedulable"), taint("node.kubernetes.io/memory-pressure", **NEW)],
            id="one more",
        ),
        pytest.param(
            node(taints=[taint("node.kubernetes.io/not-ready", "NoExecute")]),
            None,
            id="another effect is not touched",
        ),
    ],
)
def test_no_schedule_taints_follow_conditions(seen, taints):
    assert with_no_schedule_taints(seen, NOW) == taints


@pytest.mark.parametrize(
    ("ready", "present", "taints"),
    [
        pytest.param("True", [], None, id="healthy"),
        pytest.param(
            "False", [], [taint("node.kubernetes.io/not-ready", "NoExecute", **NEW)], id="not ready"
        ),
        pytest.param(
            "Unknown",
            [taint("node.kubernetes.io/not-ready", "NoExecute"), taint("mine", "NoExecute")],
            [taint("mine", "NoExecute"), taint("node.kubernetes.io/unreachable", "NoExecute", **NEW)],
            id="taint is replaced",
        ),
        pytest.param(
            "True", [taint("node.kubernetes.io/unreachable", "NoExecute")], [], id="node becomes ready"
        ),
        pytest.param(
            "False", [taint("node.kubernetes.io/not-ready", "NoExecute")], None, id="taint is already present"
        ),
    ],
)
def test_no_execute_taints_follow_conditions(ready, present, taints):
    assert with_no_execute_taint(node(ready, taints=present), ready, NOW) == taints


@pytest.mark.parametrize(
    ("ready", "ill", "state", "rate"),
    [
        pytest.param(3, 0, ZoneState.NORMAL, 0.1, id="all nodes ready"),
        pytest.param(1, 2, ZoneState.NORMAL, 0.1, id="two of three nodes unready"),
        pytest.param(4, 5, ZoneState.PARTIAL, 0, id="many of few nodes unready"),
        pytest.param(40, 60, ZoneState.PARTIAL, 0.01, id="many of many nodes unready"),
        pytest.param(0, 1, ZoneState.FULL, 0.1, id="the only one"),
        pytest.param(5, 5, ZoneState.NORMAL, 0.1, id="below the threshold"),
    ],
)
def test_zone_states(ready, ill, state, rate):
    size = ZoneSize(nodes=ready + ill, not_ready=ill)
    assert state_of(size, LIMITS) is state
    assert rate_of(state, size.nodes, LIMITS) == rate


def test_evictions_of_nodes_are_rate_limited():
    zone = Zone()
    taken = [seconds for seconds in range(30) if zone.try_accept(time_after(seconds), 0.1)]
    assert taken == [0, 10, 20]
    assert not Zone().try_accept(NOW, 0.0)


def nodes_by_zone():
    nodes = Store()
    nodes.add_tally(BY_ZONE, zone_and_readiness)
    return nodes


def test_nodes_of_one_zone_share_state():
    east = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "east"}
    nodes = nodes_by_zone()
    nodes.put(Key("", "a"), node("Unknown", labels=east))
    nodes.put(Key("", "b"), node())
    nodes.put(Key("", "c"), node(labels=east))
    nodes.put(Key("", "d"), node(labels={"node.kubernetes.io/exclude-disruption": ""}))
    assert sizes_of(nodes) == {"r:east": ZoneSize(nodes=2, not_ready=1), ":": ZoneSize(nodes=1)}


def test_zone_follows_changes_of_its_nodes():
    nodes = nodes_by_zone()
    for seen in (node("Unknown"), node(), node("Unknown")):
        nodes.put(Key("", "a"), seen)
    assert sizes_of(nodes) == {":": ZoneSize(nodes=1, not_ready=1)}
    nodes.put(Key("", "a"), node(labels={"topology.kubernetes.io/zone": "east"}))
    assert sizes_of(nodes) == {":east": ZoneSize(nodes=1)}
    nodes.remove(Key("", "a"))
    nodes.remove(Key("", "b"))
    assert sizes_of(nodes) == {}

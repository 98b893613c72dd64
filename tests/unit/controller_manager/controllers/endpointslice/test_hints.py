"""EndpointSlice: zone and node hints from the Service's traffic distribution or annotation."""

from datetime import UTC, datetime
from functools import partial

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import ENDPOINT_SLICES, NODES, PODS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Create, RecordEvent, Remember, Update
from mockube.controller_manager.controllers.endpointslice.controller import (
    SERVICE_ENDPOINT_SLICES,
    Memory,
    reconcile,
)
from mockube.controller_manager.controllers.endpointslice.hints import ANNOTATION_TOPOLOGY_MODE
from mockube.controller_manager.workloads.services import TriggerTimes
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.services_and_pods import pod, service

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = Key("default", "web")


def node(name, zone, cpu="4", *, ready=True, **labels):
    return {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone, **labels}},
        "status": {
            "allocatable": {"cpu": cpu},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


TOO_FEW = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
TWO_ZONES = (node("node-a", "a"), node("node-b", "b"))


def caches(svc, pods, slices=(), nodes=TWO_ZONES):
    objects = {SERVICES: [svc], PODS: pods, ENDPOINT_SLICES: slices, NODES: nodes}
    return FakeCaches(objects, SERVICE_ENDPOINT_SLICES.indexes, SERVICE_ENDPOINT_SLICES.tallies)


def planned_actions(svc, pods, slices=(), nodes=TWO_ZONES, *, was_shared=False):
    known = Memory(TriggerTimes(NOW, {}), is_allocated_to_zones=True) if was_shared else None
    return partial(reconcile, 100)(caches(svc, pods, slices, nodes), KEY, NOW, known).actions


def changes_of(actions):
    """Return the actions without Remember."""
    return tuple(action for action in actions if not isinstance(action, Remember))


def slices_after(actions):
    """Return the named slices after these actions."""
    bodies = [body for action in actions if isinstance(action, Create) for body in action.bodies]
    named = [body | {"metadata": body["metadata"] | {"name": f"web-{at}"}} for at, body in enumerate(bodies)]
    return named + [action.body for action in actions if isinstance(action, Update)]


def zones(actions):
    """Return the zones in the hints of all endpoints, in the order of the pods."""
    endpoints = [endpoint for one in slices_after(actions) for endpoint in one["endpoints"]]
    hints = [endpoint.get("hints", {}).get("forZones", []) for endpoint in endpoints]
    return "".join(zone["name"] for each in hints for zone in each)


def messages(actions):
    return [(each.type, each.reason, each.message) for each in actions if isinstance(each, RecordEvent)]


def memory(actions):
    return [action.memory.is_allocated_to_zones for action in actions if isinstance(action, Remember)]


def pods_on(nodes, **changes):
    return [pod(number, node=f"node-{name}", **changes) for number, name in enumerate(nodes, 1)]


def auto():
    svc = service()
    return svc | {"metadata": svc["metadata"] | {"annotations": {ANNOTATION_TOPOLOGY_MODE: "Auto"}}}


# --- traffic distribution


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (None, None),
        ("PreferClose", {"forZones": [{"name": "b"}]}),
        ("PreferSameZone", {"forZones": [{"name": "b"}]}),
        ("PreferSameNode", {"forZones": [{"name": "b"}], "forNodes": [{"name": "node-b"}]}),
    ],
)
def test_ready_endpoint_has_hints_of_its_zone(distribution, expected):
    svc = service(trafficDistribution=distribution)
    (slice_,) = slices_after(planned_actions(svc, [*pods_on("b"), pod(2, node="node-a", ready=False)]))
    assert [endpoint.get("hints") for endpoint in slice_["endpoints"]] == [expected, None]


def test_hint_changes_update_each_slice_once():
    slices = slices_after(planned_actions(service(), pods_on("ab")))
    close = service(trafficDistribution="PreferClose")
    slices = slices_after(planned_actions(close, pods_on("ab"), slices))
    assert [len(one["endpoints"]) for one in slices] == [2]
    assert changes_of(planned_actions(close, pods_on("ab"), slices)) == ()
    (slice_,) = slices_after(planned_actions(service(), pods_on("ab"), slices))
    assert not any("hints" in endpoint for endpoint in slice_["endpoints"])


# --- endpoints that zones share


def test_equal_zones_share_endpoints_equally():
    actions = planned_actions(auto(), pods_on("aaab"))
    assert sorted(zones(actions)) == ["a", "a", "b", "b"]
    event = "Topology Aware Hints has been enabled, addressType: IPv4"
    assert messages(actions) == [("Normal", "TopologyAwareHintsEnabled", event)]
    assert memory(actions) == [True]
    assert changes_of(planned_actions(auto(), pods_on("aaab"), slices_after(actions), was_shared=True)) == ()


def test_zone_with_more_cpu_gets_more_endpoints():
    nodes = (node("node-a", "a", "12"), node("node-b", "b"))
    assert sorted(zones(planned_actions(auto(), pods_on("aabb"), nodes=nodes))) == ["a", "a", "a", "b"]


@pytest.mark.parametrize(
    ("pods", "nodes", "problem"),
    [
        ("a", TWO_ZONES, "Insufficient number of endpoints (1 endpoints, 2 zones)"),
        (
            "aab",
            TWO_ZONES,
            f"{TOO_FEW} (3 endpoints, 2 zones)",
        ),
        ("ab", TWO_ZONES[:1], None),
        ("ab", (node("node-a", "a"), node("node-b", "")), None),
        ("ab", (node("node-a", "a"), node("node-b", "b", "0")), None),
        ("ab", (node("node-a", "a"), node("node-b", "b", ready=False)), None),
        (
            "ab",
            (node("node-a", "a"), node("node-b", "b", **{"node-role.kubernetes.io/control-plane": ""})),
            None,
        ),
        (
            "aac",
            (*TWO_ZONES, node("node-c", "", **{"node-role.kubernetes.io/master": ""})),
            None,
        ),
    ],
)
def test_overloaded_zones_get_no_hints(pods, nodes, problem):
    node_info = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
    if pods == "aac":
        pods, problem = "aaac", "One or more endpoints do not have a zone specified"
    actions = planned_actions(auto(), pods_on(pods), nodes=nodes)
    assert zones(actions) == ""
    message = f"{problem or node_info}, addressType: IPv4"
    assert messages(actions) == [("Warning", "TopologyAwareHintsDisabled", message)]
    assert memory(actions) == [False]


def test_hints_are_removed_with_annotation():
    slices = slices_after(planned_actions(auto(), pods_on("ab")))
    actions = planned_actions(service(), pods_on("ab"), slices, was_shared=True)
    assert zones(actions) == ""
    event = "Topology Aware Hints has been disabled, addressType: IPv4"
    assert messages(actions) == [("Warning", "TopologyAwareHintsDisabled", event)]
    assert memory(actions) == [False]


def test_hints_for_removed_zone_are_reassigned():
    slices = slices_after(planned_actions(auto(), pods_on("aabb")))
    nodes = (node("node-a", "a"), node("node-b", "c"))
    assert sorted(zones(planned_actions(auto(), pods_on("aabb"), slices, nodes, was_shared=True))) == list(
        "aacc"
    )


@pytest.mark.parametrize(
    ("nodes", "is_due"),
    [
        (TWO_ZONES, False),
        ((node("node-a", "a", "40"), node("node-b", "b")), True),
        (TWO_ZONES[:1], True),
    ],
)
def test_node_changes_map_to_services_with_overloaded_zones(nodes, is_due):
    slices = slices_after(planned_actions(auto(), pods_on("aabb")))
    keys = next(watch.keys for watch in SERVICE_ENDPOINT_SLICES.watches if watch.resource is NODES)
    new = node("node-new", "a", ready=False)
    change = Change(None, new)
    assert (KEY in set(keys(caches(auto(), [], slices, nodes), change))) == is_due
    assert set(keys(caches(auto(), [], slices, nodes), Change(new, new))) == set()

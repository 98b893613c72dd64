"""The endpoints of a Service: their families, groups, fields and labels, and the nodes that concern it."""

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import NODES, PODS, SERVICES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.endpointslice.controller import (
    SERVICE_ENDPOINT_SLICES,
    Memory,
    reconcile,
)
from mockube.controller_manager.controllers.endpointslice.desired_endpoints import (
    address_types,
    group_by_ports,
    labels_of,
)
from mockube.controller_manager.workloads.services import TriggerTimes
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.services_and_pods import pod, service

KEY = Key("default", "web")
ZONE = "topology.kubernetes.io/zone"
NOW = SteppedClock().now()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ipFamilies": ["IPv6"]}, ("IPv6",)),
        ({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv6", "IPv4")),
        ({"ipFamilies": [], "clusterIP": "10.0.0.1"}, ("IPv4",)),
        ({"ipFamilies": None, "clusterIP": "fd00::1"}, ("IPv6",)),
        ({"ipFamilies": [], "clusterIP": "None"}, ("IPv4", "IPv6")),
        ({"ipFamilies": [], "clusterIP": ""}, ("IPv4", "IPv6")),
    ],
)
def test_families_are_those_of_the_service_or_of_its_address(spec, expected):
    assert address_types(service(**spec)) == expected


def node(**labels):
    return {"metadata": {"name": "node-1", "labels": labels}}


def endpoint_of(subject, svc=None, *, family="IPv4", of_node=None):
    groups = group_by_ports(svc or service(), [PodView.of(subject)], family, lambda _: of_node)
    endpoints = [endpoint for group in groups.values() for endpoint in group.values()]
    return endpoints[0] if endpoints else None


@pytest.mark.parametrize(
    ("subject", "svc", "of_node", "expected"),
    [
        (pod(1), service(), node(), True),
        (pod(1), service(), None, False),
        (pod(1), service(publishNotReadyAddresses=True), None, True),
        (pod(1, ips=[]), service(), node(), False),
        (pod(1, ips=["fd00::1"]), service(), node(), False),
        (pod(1, phase="Failed"), service(), node(), False),
        (pod(1, deleting=True), service(), node(), True),
    ],
)
def test_reachable_pod_of_a_known_node_is_an_endpoint(subject, svc, of_node, expected):
    assert (endpoint_of(subject, svc, of_node=of_node) is not None) is expected


def test_endpoint_has_the_addresses_of_its_family():
    subject = pod(1, ips=["10.0.0.1", "fd00::1"])
    assert endpoint_of(subject, of_node=node())["addresses"] == ["10.0.0.1"]
    assert endpoint_of(subject, family="IPv6", of_node=node())["addresses"] == ["fd00::1"]


@pytest.mark.parametrize(
    ("subject", "svc", "of_node", "fields"),
    [
        (pod(1), service(), node(), {"nodeName": "node-1"}),
        (pod(1), service(), node(**{ZONE: "a"}), {"nodeName": "node-1", "zone": "a"}),
        (pod(1, node=""), service(publishNotReadyAddresses=True), None, {}),
        (pod(1, hostname="h", subdomain="web"), service(), node(), {"nodeName": "node-1", "hostname": "h"}),
    ],
)
def test_endpoint_has_known_fields_only(subject, svc, of_node, fields):
    found = endpoint_of(subject, svc, of_node=of_node)
    assert {
        name: value for name, value in found.items() if name in ("nodeName", "zone", "hostname")
    } == fields


@pytest.mark.parametrize(
    ("ready", "deleting", "published", "expected"),
    [
        (True, False, False, (True, True, False)),
        (False, False, False, (False, False, False)),
        (True, True, False, (False, True, True)),
        (False, True, True, (True, False, True)),
    ],
)
def test_conditions_of_an_endpoint(ready, deleting, published, expected):
    svc = service(publishNotReadyAddresses=published)
    found = endpoint_of(pod(1, ready=ready, deleting=deleting), svc, of_node=node())["conditions"]
    assert (found["ready"], found["serving"], found["terminating"]) == expected


@pytest.mark.parametrize(
    ("address", "headless"), [("10.0.0.1", {}), ("None", {"service.kubernetes.io/headless": ""})]
)
def test_reserved_labels_are_not_copied(address, headless):
    svc = service(clusterIP=address)
    reserved = {
        "kubernetes.io/service-name": "x",
        "endpointslice.kubernetes.io/managed-by": "x",
        "service.kubernetes.io/headless": "x",
    }
    svc["metadata"]["labels"] = {"team": "a", **reserved}
    assert labels_of(svc, "us") == {
        "team": "a",
        **headless,
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "us",
    }


# --- the controller


def of_node(zone="a", *, ready=True):
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": {"name": "node-1", "labels": {ZONE: zone}}, "status": status}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, of_node(), [KEY]),
        (of_node(), None, [KEY]),
        (of_node(), of_node(), []),
        (of_node(), of_node("b"), [KEY]),
        (of_node(), of_node(ready=False), []),
    ],
)
def test_node_concerns_services_of_its_pods(old, new, expected):
    objects = {SERVICES: [service()], PODS: [pod(1), pod(2, node="other")], NODES: []}
    caches = FakeCaches(objects, SERVICE_ENDPOINT_SLICES.indexes, SERVICE_ENDPOINT_SLICES.tallies)
    (keys,) = (watch.keys for watch in SERVICE_ENDPOINT_SLICES.watches if watch.resource is NODES)
    assert [*keys(caches, Change(old, new))] == expected


@pytest.mark.parametrize("services", [[], [service(selector=None)]], ids=["deleted", "without selector"])
def test_service_without_slices_is_forgotten(services):
    caches = FakeCaches({SERVICES: services}, SERVICE_ENDPOINT_SLICES.indexes)
    memory = Memory(TriggerTimes(NOW, {}))
    (action,) = reconcile(100, caches, KEY, NOW, memory).actions
    assert action.memory is None
    assert reconcile(100, caches, KEY, NOW, None).actions == ()


def test_pods_with_other_labels_are_no_endpoints():
    other = pod(2)
    other["metadata"]["labels"] = {"app": "api"}
    objects = {SERVICES: [service()], PODS: [pod(1), other], NODES: [of_node()]}
    plan = reconcile(100, FakeCaches(objects, SERVICE_ENDPOINT_SLICES.indexes), KEY, NOW)
    (create,) = (action for action in plan.actions if hasattr(action, "bodies"))
    assert len(create.bodies[0]["endpoints"]) == plan.counted == 1

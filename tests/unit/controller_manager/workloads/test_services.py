"""The pods of a Service, their addresses and ports, and which changes of a pod concern it."""

from datetime import timedelta

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import SERVICES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.services import PodPorts, ServicePort, TriggerTimes
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.services_and_pods import pod, service

KEY = Key("default", "web")
NOW = SteppedClock().now()
SECOND = timedelta(seconds=1)


def view(number=1, **spec):
    return PodView.of(pod(number, **spec))


def with_status(**status):
    tree = pod(1)
    return PodView.of({**tree, "status": status})


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        ({}, {"app": "web"}, True),
        ({}, {"app": "web", "more": "x"}, True),
        ({}, {"app": "api"}, False),
        ({}, {}, False),
        ({"selector": {"app": "web", "tier": "a"}}, {"app": "web"}, False),
        ({"selector": {}}, {"app": "api"}, True),
        ({"selector": None}, {"app": "web"}, False),
        ({"type": "ExternalName"}, {"app": "web"}, False),
    ],
)
def test_service_selects_pods_with_all_its_labels(spec, labels, expected):
    assert services.selects(service(**spec), labels) is expected


@pytest.mark.parametrize(
    ("address", "expected"), [("10.0.0.9", True), ("fd00::9", True), ("None", False), ("", False)]
)
def test_headless_service_has_no_address(address, expected):
    assert services.has_cluster_ip(service(clusterIP=address)) is expected


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False), (None, False)])
def test_pods_that_are_not_ready_are_published_on_request(value, expected):
    assert services.publishes_not_ready(service(publishNotReadyAddresses=value)) is expected


@pytest.mark.parametrize(
    ("subject", "even_deleting", "expected"),
    [
        (view(), False, True),
        (view(ready=False), False, True),
        (view(ips=[]), False, False),
        (view(phase="Failed"), False, False),
        (view(phase="Succeeded"), True, False),
        (view(deleting=True), False, False),
        (view(deleting=True), True, True),
    ],
)
def test_pod_with_address_that_has_not_ended_is_reachable(subject, even_deleting, expected):
    assert services.is_reachable(subject, even_deleting=even_deleting) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "podIP": "10.0.0.7"}, ["10.0.0.1", "fd00::1"]),
        ({"podIPs": [{"ip": ""}, {}], "podIP": "10.0.0.7"}, ["10.0.0.7"]),
        ({"podIP": "10.0.0.7"}, ["10.0.0.7"]),
        ({"podIP": ""}, []),
        ({}, []),
    ],
)
def test_addresses_are_all_of_the_pod_or_its_one(status, expected):
    assert services.addresses_of(with_status(**status)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hostname": "a", "subdomain": "web"}, "a"),
        ({"hostname": "a", "subdomain": "api"}, ""),
        ({"hostname": "a"}, ""),
        ({"subdomain": "web"}, ""),
    ],
)
def test_host_name_needs_the_subdomain_of_the_service(spec, expected):
    assert services.hostname_of(view(**spec), service()) == expected
    elsewhere = service()
    elsewhere["metadata"]["namespace"] = "other"
    assert services.hostname_of(view(**spec), elsewhere) == ""


HTTP, DNS = {"name": "http", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}


@pytest.mark.parametrize(
    ("port", "spec", "expected"),
    [
        ({"port": 80}, {}, [("", 80, "TCP", "")]),
        ({"port": 80, "targetPort": 0}, {}, [("", 80, "TCP", "")]),
        ({"port": 80, "targetPort": 8080, "name": "x", "appProtocol": "h2"}, {}, [("x", 8080, "TCP", "h2")]),
        ({"port": 80, "targetPort": "http"}, {"ports": [HTTP]}, [("", 8080, "TCP", "")]),
        ({"port": 80, "targetPort": "http"}, {"ports": [DNS]}, []),
        ({"port": 53, "targetPort": "dns", "protocol": "UDP"}, {"ports": [DNS]}, [("", 53, "UDP", "")]),
        ({"port": 53, "targetPort": "dns"}, {"ports": [DNS]}, []),
        (
            {"port": 80, "targetPort": "http"},
            {"ports": [HTTP, {**HTTP, "containerPort": 9}]},
            [("", 8080, "TCP", "")],
        ),
        (
            {"port": 80, "targetPort": "http"},
            {"initContainers": [{"restartPolicy": "Always", "ports": [HTTP]}]},
            [("", 8080, "TCP", "")],
        ),
        ({"port": 80, "targetPort": "http"}, {"initContainers": [{"ports": [HTTP]}]}, []),
    ],
)
def test_port_is_resolved_in_the_pod(port, spec, expected):
    assert PodPorts(service(port)).of(view(**spec)) == tuple(ServicePort(*each) for each in expected)


def test_equal_ports_of_pods_are_one_object():
    ports = PodPorts(service({"port": 80, "targetPort": "http"}))
    assert ports.of(view(1, ports=[HTTP])) is ports.of(view(2, ports=[HTTP]))
    assert ports.of(view(3, ports=[{**HTTP, "containerPort": 9}])) == (ServicePort("", 9, "TCP", ""),)


NAME = "endpoints.kubernetes.io/last-change-trigger-time"


@pytest.mark.parametrize(
    ("times", "previous", "expected"),
    [
        (TriggerTimes(NOW, {"a": NOW + SECOND}), None, "2030-01-01T00:00:00Z"),
        (TriggerTimes(NOW, {}), TriggerTimes(NOW, {}), None),
        (TriggerTimes(NOW + SECOND, {}), TriggerTimes(NOW, {}), "2030-01-01T00:00:01Z"),
        (TriggerTimes(NOW, {"a": NOW + SECOND}), TriggerTimes(NOW, {}), "2030-01-01T00:00:01Z"),
        (TriggerTimes(NOW, {"a": NOW + SECOND}), TriggerTimes(NOW, {"a": NOW + SECOND}), None),
        (
            TriggerTimes(NOW, {"a": NOW + 2 * SECOND, "b": NOW + SECOND}),
            TriggerTimes(NOW, {"a": NOW}),
            "2030-01-01T00:00:01Z",
        ),
    ],
)
def test_oldest_new_time_is_annotated(times, previous, expected):
    assert times.annotation(previous) == {NAME: expected}


def test_trigger_times_are_those_of_the_service_and_of_ready_pods():
    times = TriggerTimes.of(service(), [view(1), with_status()], NOW + SECOND)
    assert times == TriggerTimes(NOW, {"web-1": NOW})
    undated = service()
    del undated["metadata"]["creationTimestamp"]
    assert TriggerTimes.of(undated, [], NOW + SECOND).service == NOW + SECOND


def changed(**spec):
    return Change(view(), view(**spec))


def labelled(labels):
    tree = pod(1)
    return PodView.of({**tree, "metadata": {**tree["metadata"], "labels": labels}})


def replaced():
    tree = pod(1)
    return PodView.of({**tree, "metadata": {**tree["metadata"], "uid": "another"}})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(None, view()), [KEY]),
        (Change(view(), None), [KEY]),
        (changed(), []),
        (changed(ready=False), [KEY]),
        (changed(ips=["10.0.0.7"]), [KEY]),
        (changed(node="other"), [KEY]),
        (changed(phase="Failed"), [KEY]),
        (changed(deleting=True), [KEY]),
        (changed(hostname="a"), [KEY]),
        (changed(subdomain="a"), [KEY]),
        (changed(priority=1), []),
        (Change(view(), labelled({"app": "api"})), [KEY]),
        (Change(labelled({"app": "api"}), view()), [KEY]),
        (Change(view(), replaced()), [KEY]),
        (Change(None, labelled({"app": "api"})), []),
    ],
)
def test_change_of_an_endpoint_concerns_its_service(change, expected):
    other = service()
    other["metadata"] |= {"name": "other", "namespace": "other"}
    assert [*services.keys_of_pod(SERVICES, FakeCaches({SERVICES: [service(), other]}), change)] == expected

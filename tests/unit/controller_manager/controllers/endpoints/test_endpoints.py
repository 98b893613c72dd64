from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import ENDPOINTS, PODS, SERVICES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Create, Delete, Remember, Update
from mockube.controller_manager.control.runner import delay_of
from mockube.controller_manager.controllers.endpoints import controller as endpoints_controller
from mockube.controller_manager.controllers.endpoints.controller import SERVICE_ENDPOINTS, reconcile
from mockube.controller_manager.controllers.endpoints.subsets import truncate_subsets
from mockube.controller_manager.workloads import services
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.services_and_pods import THEN, pod, service
from tests.support.hostile.doubling import check_linear

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = Key("default", "web")


def planned_writes(objects, remembered=None):
    """Return the planned actions without Remember."""
    actions = reconcile(FakeCaches(objects), KEY, NOW, remembered).actions
    return tuple(action for action in actions if not isinstance(action, Remember))


def remembered_state(objects, before=None):
    actions = reconcile(FakeCaches(objects), KEY, NOW, before).actions
    (memory,) = [action.memory for action in actions if isinstance(action, Remember)]
    return memory


def created_endpoints(svc, *pods):
    (action,) = planned_writes({SERVICES: [svc], PODS: pods})
    assert isinstance(action, Create)
    return action.bodies[0]


def addresses(subset, field="addresses"):
    return [one["ip"] for one in subset.get(field, ())]


def test_endpoints_of_service_and_pods():
    assert created_endpoints(service(), pod(1), pod(2, ready=False)) == {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"},
            "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": THEN},
        },
        "subsets": [
            {
                "addresses": [
                    {
                        "ip": "10.244.0.1",
                        "nodeName": "node-1",
                        "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "uid-1"},
                    }
                ],
                "notReadyAddresses": [
                    {
                        "ip": "10.244.0.2",
                        "nodeName": "node-1",
                        "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-2", "uid": "uid-2"},
                    }
                ],
                "ports": [{"port": 8080, "protocol": "TCP"}],
            }
        ],
    }


@pytest.mark.parametrize(
    "absent",
    [
        pytest.param(pod(1, ips=[]), id="no address"),
        pytest.param(pod(1, phase="Failed"), id="failed"),
        pytest.param(pod(1, phase="Succeeded"), id="succeeded"),
        pytest.param(pod(1, deleting=True), id="deleting"),
        pytest.param(pod(1, ips=["fd00::1"]), id="an address of another family"),
    ],
)
def test_unreachable_pods_have_no_addresses(absent):
    assert "subsets" not in {
        name: value for name, value in created_endpoints(service(), absent).items() if value
    }


def test_not_ready_addresses_are_published_if_requested():
    (subset,) = created_endpoints(
        service(publishNotReadyAddresses=True), pod(1, ready=False), pod(2, deleting=True)
    )["subsets"]
    assert addresses(subset) == ["10.244.0.1", "10.244.0.2"]


def test_named_ports_group_addresses_into_subsets():
    web = {"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}
    also = {"name": "metrics", "port": 90, "targetPort": 9090, "protocol": "TCP"}
    pods = [pod(at, ports=[{"name": "http", "containerPort": 8080 + at % 2}]) for at in (1, 2)]
    subsets = created_endpoints(service(web, also), *pods)["subsets"]
    found = {tuple(port["port"] for port in one["ports"]): addresses(one) for one in subsets}
    assert found == {
        (9090,): ["10.244.0.1", "10.244.0.2"],
        (8080,): ["10.244.0.2"],
        (8081,): ["10.244.0.1"],
    }


@pytest.mark.timed
@pytest.mark.parametrize("is_named", [True, False])
def test_time_is_linear_in_ports_and_pods(is_named):
    def objects(size):
        ports = [{"name": f"p{at}", "containerPort": at + 1} for at in range(size)]
        targets = [
            {"name": f"p{at}", "port": at + 1, "targetPort": f"p{at}" if is_named else at + 1}
            for at in range(size)
        ]
        return {SERVICES: [service(*targets)], PODS: [pod(at + 1, ports=ports) for at in range(10)]}

    check_linear(objects, planned_writes, 1000)


def test_ports_are_sorted_by_hash():
    """The expected order is that of the real controller."""
    ports = [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
        for name, port in (("b", 81), ("a", 8080))
    ]
    (subset,) = created_endpoints(service(*reversed(ports)), pod(1))["subsets"]
    assert [port["name"] for port in subset["ports"]] == ["b", "a"]


def test_headless_service_without_ports_has_endpoints():
    headless = service(clusterIP="None")
    headless["spec"]["ports"] = []
    endpoints = created_endpoints(headless, pod(1, hostname="a", subdomain="web"))
    assert endpoints["metadata"]["labels"] == {
        "team": "a",
        "service.kubernetes.io/headless": "",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    (subset,) = endpoints["subsets"]
    assert subset["addresses"][0]["hostname"] == "a"
    assert "ports" not in subset


def test_unchanged_endpoints_are_not_written():
    endpoints = created_endpoints(service(), pod(1))
    assert planned_writes({SERVICES: [service()], PODS: [pod(1)], ENDPOINTS: [endpoints]}) == ()


def test_changed_endpoints_are_updated():
    endpoints = created_endpoints(service(), pod(1))
    (action,) = planned_writes({SERVICES: [service()], PODS: [pod(1), pod(2)], ENDPOINTS: [endpoints]})
    assert isinstance(action, Update)
    assert addresses(action.body["subsets"][0]) == ["10.244.0.1", "10.244.0.2"]


def test_last_change_trigger_time_annotation_follows_changes():
    endpoints = created_endpoints(service(), pod(1))
    known = remembered_state({SERVICES: [service()], PODS: [pod(1)]})
    (update,) = planned_writes({SERVICES: [service()], ENDPOINTS: [endpoints]}, known)
    assert "annotations" not in update.body["metadata"] or not update.body["metadata"]["annotations"]
    later = pod(1, ready=False)
    later["status"]["conditions"][0]["lastTransitionTime"] = "2030-01-01T00:01:00Z"
    (update,) = planned_writes({SERVICES: [service()], PODS: [later], ENDPOINTS: [endpoints]}, known)
    name = "endpoints.kubernetes.io/last-change-trigger-time"
    assert update.body["metadata"]["annotations"] == {name: "2030-01-01T00:01:00Z"}


def test_endpoints_without_service_map_to_no_key():
    (watch,) = [one for one in SERVICE_ENDPOINTS.watches if one.resource is ENDPOINTS]
    made = {"metadata": {"name": "mine", "namespace": "default"}}
    assert [*watch.keys(FakeCaches({}), Change(None, made))] == []
    assert [*watch.keys(FakeCaches({}), Change(made, None))] == [Key("default", "mine")]
    assert [*watch.keys(FakeCaches({}), Change(None, created_endpoints(service(), pod(1))))] == [KEY]


@pytest.mark.parametrize("svc", [service(selector=None), service(type="ExternalName")])
def test_services_without_managed_endpoints_are_ignored(svc):
    assert planned_writes({SERVICES: [svc], PODS: [pod(1)]}) == ()


def test_endpoints_of_deleted_service_are_deleted():
    endpoints = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}}
    known = remembered_state({SERVICES: [service()]})
    (action,) = planned_writes({ENDPOINTS: [endpoints]}, known)
    assert isinstance(action, Delete)
    assert planned_writes({ENDPOINTS: [endpoints]}) == (), "a user created them without a service"
    (left_over,) = planned_writes({ENDPOINTS: [created_endpoints(service(), pod(1))]})
    assert isinstance(left_over, Delete)
    lock = {
        "metadata": endpoints["metadata"]
        | {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}
    }
    assert planned_writes({ENDPOINTS: [lock]}, known) == ()
    assert planned_writes({}) == ()


@pytest.mark.parametrize(
    ("ready", "not_ready", "expected"),
    [
        pytest.param([600, 400], [0, 0], ([600, 400], [0, 0], False), id="just fits"),
        pytest.param([500, 500], [10, 10], ([500, 500], [0, 0], True), id="ready ones alone fit"),
        pytest.param([1500, 500], [10, 10], ([750, 250], [0, 0], True), id="too many ready ones"),
        pytest.param([400, 400], [300, 100], ([400, 400], [150, 50], True), id="too many that are not ready"),
    ],
)
def test_endpoints_are_truncated_at_1000(ready, not_ready, expected):
    subsets = [
        {"addresses": [{}] * some, "notReadyAddresses": [{}] * others}
        for some, others in zip(ready, not_ready, strict=True)
    ]
    kept, is_over = truncate_subsets(subsets)
    counted = [[len(one.get(field, ())) for one in kept] for field in ("addresses", "notReadyAddresses")]
    assert (*counted, is_over) == expected


def test_changes_of_pods_wait_the_longer_the_more_pods_the_service_has():
    pods = [pod(at + 1) for at in range(50)]
    objects = {SERVICES: [service()], PODS: pods}
    first = reconcile(FakeCaches(objects), KEY, NOW, None)
    unchanged = reconcile(FakeCaches({**objects, ENDPOINTS: [first.actions[-1].bodies[0]]}), KEY, NOW, None)
    (watch,) = [watch for watch in SERVICE_ENDPOINTS.watches if watch.resource is PODS]
    assert [delay_of(watch, plan.counted) for plan in (first, unchanged)] == [timedelta(milliseconds=5)] * 2


@pytest.mark.parametrize(
    ("spec", "labels", "is_selected"),
    [
        ({"selector": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"selector": {"a": "b"}}, {"a": "c"}, False),
        ({"selector": {"a": "b"}}, {}, False),
        ({"selector": {}}, {"a": "b"}, True),
        ({}, {"a": "b"}, False),
        ({"selector": {"a": "b"}, "type": "ExternalName"}, {"a": "b"}, False),
    ],
)
def test_pods_that_a_service_selects(spec, labels, is_selected):
    assert services.selects({"spec": spec}, labels) is is_selected


@pytest.mark.parametrize(
    ("fields", "even_deleting", "is_reachable"),
    [
        ({}, False, True),
        ({"ips": []}, False, False),
        ({"deleting": True}, False, False),
        ({"deleting": True}, True, True),
        ({"phase": "Failed"}, True, False),
    ],
)
def test_pod_that_is_reachable(fields, even_deleting, is_reachable):
    assert services.is_reachable(PodView.of(pod(1, **fields)), even_deleting=even_deleting) is is_reachable


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        ({"podIPs": [{"ip": "1"}, {"ip": "2"}], "podIP": "1"}, ["1", "2"]),
        ({"podIPs": [{}], "podIP": "1"}, ["1"]),
        ({"podIP": "1"}, ["1"]),
        ({"podIP": ""}, []),
        ({}, []),
    ],
)
def test_addresses_of_a_pod(status, addresses):
    assert services.addresses_of(PodView.of({**pod(1), "status": status})) == addresses


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"hostname": "h", "subdomain": "web"}, "h"),
        ({"hostname": "h", "subdomain": "other"}, ""),
        ({"hostname": "h"}, ""),
        ({"subdomain": "web"}, ""),
    ],
)
def test_hostname_in_the_domain_of_a_service(spec, name):
    assert services.hostname_of(PodView.of(pod(1, **spec)), service()) == name
    elsewhere = {**service(), "metadata": {"name": "web", "namespace": "other"}}
    assert services.hostname_of(PodView.of(pod(1, **spec)), elsewhere) == ""


@pytest.mark.parametrize(("ip", "has_ip"), [("10.0.0.1", True), ("None", False), ("", False), (None, False)])
def test_cluster_ip(ip, has_ip):
    tree = {"spec": {} if ip is None else {"clusterIP": ip}}
    assert services.has_cluster_ip(tree) is has_ip


HTTP, DNS = {"name": "http", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}
SIDECAR = {"name": "s", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 9}]}
INIT = {"name": "i", "ports": [{"name": "init", "containerPort": 7}]}


@pytest.mark.parametrize(
    ("port", "numbers"),
    [
        ({"port": 80}, [80]),
        ({"port": 80, "targetPort": 0}, [80]),
        ({"port": 80, "targetPort": 8000}, [8000]),
        ({"port": 80, "targetPort": "http"}, [8080]),
        ({"port": 80, "targetPort": "http", "protocol": "UDP"}, []),
        ({"port": 53, "targetPort": "dns", "protocol": "UDP"}, [53]),
        ({"port": 53, "targetPort": "dns"}, []),
        ({"port": 1, "targetPort": "side"}, [9]),
        ({"port": 1, "targetPort": "init"}, []),
        ({"port": 1, "targetPort": "none"}, []),
    ],
)
def test_port_of_a_service_in_a_pod(port, numbers):
    ports = services.PodPorts(service(port))
    tree = pod(1, ports=[HTTP, DNS, {**HTTP, "containerPort": 1}], initContainers=[SIDECAR, INIT])
    found = ports.of(PodView.of(tree))
    assert [each.number for each in found] == numbers
    assert ports.of(PodView.of(tree)) is found


READY_AT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "previous", "annotation"),
    [
        ((0, {}), None, 0),
        ((0, {"a": 5}), (0, {}), 5),
        ((0, {"a": 5}), (0, {"a": 5}), None),
        ((0, {"a": 6, "b": 9}), (0, {"a": 5}), 6),
        ((7, {"a": 9}), (0, {"a": 5}), 7),
        ((0, {"a": 4}), (0, {"a": 5}), None),
    ],
)
def test_oldest_new_time_triggers_a_change(times, previous, annotation):
    def made(seconds, pods):
        at = {name: READY_AT + timedelta(seconds=each) for name, each in pods.items()}
        return services.TriggerTimes(READY_AT + timedelta(seconds=seconds), at)

    found = made(*times).annotation(None if previous is None else made(*previous))
    time = None if annotation is None else format_time(READY_AT + timedelta(seconds=annotation))
    assert [*found.values()] == [time]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (None, pod(1), ["web"]),
        (pod(1), None, ["web"]),
        (pod(1), pod(1), []),
        (pod(1), pod(1, ready=False), ["web"]),
        (pod(1), pod(1, node="b"), ["web"]),
        (pod(1), pod(1, hostname="h"), ["web"]),
        (pod(1), pod(1, subdomain="h"), ["web"]),
        (pod(1), pod(1, ips=["1"]), ["web"]),
        (pod(1), pod(1, phase="Failed"), ["web"]),
        (pod(1), pod(1, deleting=True), ["web"]),
        (pod(1), pod(2), ["web"]),
        (None, {**pod(1), "metadata": {"name": "x", "namespace": "default", "labels": {}}}, []),
        (pod(1), {**pod(1), "metadata": {"name": "x", "namespace": "default", "labels": {}}}, ["web"]),
        (None, {**pod(1), "metadata": {"name": "x", "namespace": "other", "labels": {"app": "web"}}}, []),
    ],
)
def test_services_of_a_pod_that_changes(old, new, names):
    views = [None if tree is None else PodView.of(tree) for tree in (old, new)]
    caches = FakeCaches({SERVICES: [service()]})
    assert [key.name for key in services.keys_of_pod(SERVICES, caches, Change(*views))] == names


MANAGED = {
    "metadata": {
        "name": "e",
        "namespace": "d",
        "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
    }
}
OWN = {"metadata": {"name": "e", "namespace": "d"}}


@pytest.mark.parametrize(
    ("old", "new", "is_reconciled"),
    [
        (None, MANAGED, True),
        (None, OWN, False),
        (OWN, None, True),
        (MANAGED, MANAGED, False),
        (OWN, OWN, False),
    ],
)
def test_endpoints_that_may_be_left_over(old, new, is_reconciled):
    assert bool(endpoints_controller._endpoints_key(None, Change(old, new))) is is_reconciled

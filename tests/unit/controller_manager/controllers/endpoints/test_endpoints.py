from datetime import UTC, datetime, timedelta

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import ENDPOINTS, PODS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Create, Delete, Remember, Update
from mockube.controller_manager.control.runner import delay_of
from mockube.controller_manager.controllers.endpoints.controller import SERVICE_ENDPOINTS, reconcile
from mockube.controller_manager.controllers.endpoints.subsets import truncate_subsets
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


@pytest.mark.thorough
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

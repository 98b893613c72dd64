from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from mockube.client.kinds import ENDPOINT_SLICES, NODES, PODS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Create, Delete, Remember, Update
from mockube.controller_manager.control.runner import delay_of
from mockube.controller_manager.controllers.endpointslice.controller import (
    BY_SERVICE,
    SERVICE_ENDPOINT_SLICES,
    by_own_service,
    reconcile,
)
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.services_and_pods import THEN, pod, service
from tests.support.hostile.doubling import check_linear

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = Key("default", "web")
NODE = {"metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/zone": "a"}}}
LABELS = {
    "team": "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
}


def planned_writes(svc, pods, slices=(), *, maximum=3, nodes=(NODE,), memory=None):
    """Return the planned writes and Events, without Remember."""
    actions = all_planned(svc, pods, slices, maximum=maximum, nodes=nodes, memory=memory)
    return tuple(action for action in actions if not isinstance(action, Remember))


def all_planned(svc, pods, slices=(), *, maximum=3, nodes=(NODE,), memory=None):
    objects = {SERVICES: [svc], PODS: pods, ENDPOINT_SLICES: slices, NODES: nodes}
    caches = FakeCaches(objects, {ENDPOINT_SLICES: {BY_SERVICE: by_own_service}})
    return partial(reconcile, maximum)(caches, KEY, NOW, memory).actions


def remembered_state(svc, pods):
    (memory,) = [action.memory for action in all_planned(svc, pods) if isinstance(action, Remember)]
    return memory


@pytest.mark.timed
def test_time_is_linear_in_ports_and_pods():
    def objects(size):
        ports = [{"name": f"p{at}", "containerPort": at + 1} for at in range(size)]
        targets = [{"name": f"p{at}", "port": at + 1, "targetPort": f"p{at}"} for at in range(size)]
        return service(*targets), [pod(at + 1, ports=ports) for at in range(10)]

    check_linear(objects, lambda pair: planned_writes(*pair), 1000)


def test_last_change_annotation_is_updated_or_removed():
    slices = created_slices(planned_writes(service(), [pod(1), pod(2)]))
    known = remembered_state(service(), [pod(1), pod(2)])
    (update,) = planned_writes(service(), [pod(1)], slices, memory=known)
    assert not update.body["metadata"].get("annotations")
    later = pod(2, ready=False)
    later["status"]["conditions"][0]["lastTransitionTime"] = "2030-01-01T00:01:00Z"
    (update,) = planned_writes(service(), [pod(1), later], slices, memory=known)
    name = "endpoints.kubernetes.io/last-change-trigger-time"
    assert update.body["metadata"]["annotations"] == {name: "2030-01-01T00:01:00Z"}


def created_slices(actions):
    """Return the slices that exist after these creations."""
    assert all(isinstance(action, Create) for action in actions)
    bodies = [body for action in actions for body in action.bodies]
    return [
        body | {"metadata": body["metadata"] | {"name": f"web-{at}", "uid": f"slice-{at}"}}
        for at, body in enumerate(bodies)
    ]


def sizes(bodies):
    return sorted(len(body["endpoints"]) for body in bodies)


def test_slice_of_service_and_pod():
    (slice_,) = created_slices(planned_writes(service(), [pod(1)]))
    assert slice_["metadata"] == {
        "generateName": "web-",
        "name": "web-0",
        "uid": "slice-0",
        "namespace": "default",
        "labels": LABELS,
        "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": THEN},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "name": "web",
                "uid": "uid-web",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert slice_["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert slice_["endpoints"] == [
        {
            "addresses": ["10.244.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "uid-1"},
            "nodeName": "node-1",
            "zone": "a",
        }
    ]


@pytest.mark.parametrize(
    ("shown", "spec", "conditions"),
    [
        pytest.param(pod(1, ready=False), {}, (False, False, False), id="not ready"),
        pytest.param(pod(1, deleting=True), {}, (False, True, True), id="deleting"),
        pytest.param(
            pod(1, ready=False),
            {"publishNotReadyAddresses": True},
            (True, False, False),
            id="not ready, but published",
        ),
    ],
)
def test_endpoint_conditions(shown, spec, conditions):
    (slice_,) = created_slices(planned_writes(service(**spec), [shown]))
    assert tuple(slice_["endpoints"][0]["conditions"].values()) == conditions


def test_service_without_pods_has_empty_slice():
    (slice_,) = created_slices(planned_writes(service(), []))
    assert (slice_["endpoints"], slice_["ports"]) == ([], [])
    assert planned_writes(service(), [], [slice_]) == ()


def test_empty_slice_is_filled_first():
    empty = created_slices(planned_writes(service(), []))
    (update,) = planned_writes(service(), [pod(1)], empty)
    assert isinstance(update, Update)
    assert update.body["metadata"]["name"] == "web-0"
    assert sizes([update.body]) == [1]


def test_pod_of_unknown_node_is_not_in_slice():
    (slice_,) = created_slices(planned_writes(service(), [pod(1)], nodes=()))
    assert slice_["endpoints"] == []


def test_pods_beyond_slice_limit_get_second_slice():
    pods = [pod(at) for at in range(1, 8)]
    slices = created_slices(planned_writes(service(), pods))
    assert sizes(slices) == [1, 3, 3]
    assert planned_writes(service(), pods, slices) == ()


def test_new_pod_fills_slice_with_room():
    slices = created_slices(planned_writes(service(), [pod(at) for at in range(1, 5)]))
    (update,) = planned_writes(service(), [pod(at) for at in range(1, 6)], slices)
    assert isinstance(update, Update)
    assert sizes([update.body]) == [2]


def test_new_pod_fills_slice_that_changes_anyway():
    slices = created_slices(planned_writes(service(), [pod(at) for at in range(1, 4)]))
    (update,) = planned_writes(service(), [pod(2), pod(3), pod(4)], slices)
    assert sorted(one["targetRef"]["name"] for one in update.body["endpoints"]) == ["web-2", "web-3", "web-4"]


def test_emptied_slice_is_deleted():
    slices = created_slices(planned_writes(service(), [pod(at) for at in range(1, 5)]))
    (delete,) = planned_writes(service(), [pod(at) for at in range(1, 4)], slices)
    assert isinstance(delete, Delete)


def test_each_address_family_has_a_slice():
    both = service(ipFamilies=["IPv4", "IPv6"])
    slices = created_slices(planned_writes(both, [pod(1, ips=["10.244.0.1", "fd00::1"])]))
    assert [(one["addressType"], one["endpoints"][0]["addresses"]) for one in slices] == [
        ("IPv4", ["10.244.0.1"]),
        ("IPv6", ["fd00::1"]),
    ]
    (delete,) = planned_writes(service(), [pod(1)], slices)
    assert isinstance(delete, Delete)


def test_slice_of_former_service_is_replaced():
    (old,) = created_slices(planned_writes(service(), [pod(1)]))
    svc = service()
    svc["metadata"]["uid"] = "uid-new"
    create, delete = planned_writes(svc, [pod(1)], [old])
    assert isinstance(create, Create)
    assert isinstance(delete, Delete)


def test_changed_service_labels_update_slices():
    slices = created_slices(planned_writes(service(), [pod(1)]))
    svc = service()
    svc["metadata"]["labels"] = {"team": "b"}
    (update,) = planned_writes(svc, [pod(1)], slices)
    assert update.body["metadata"]["labels"] == LABELS | {"team": "b"}


def test_deleting_or_selectorless_service_gets_no_slices():
    svc = service()
    svc["metadata"]["deletionTimestamp"] = THEN
    assert planned_writes(svc, [pod(1)]) == ()
    assert planned_writes(service(selector=None), [pod(1)]) == ()


def test_changes_of_pods_wait_the_longer_the_more_pods_the_service_has():
    objects = {SERVICES: [service()], PODS: [pod(at + 1) for at in range(50)], NODES: [NODE]}
    caches = FakeCaches(objects, SERVICE_ENDPOINT_SLICES.indexes)
    (watch,) = [watch for watch in SERVICE_ENDPOINT_SLICES.watches if watch.resource is PODS]
    assert delay_of(watch, reconcile(100, caches, KEY, NOW).counted) == timedelta(milliseconds=5)

"""Extended resources that device classes provide: their classes, requests for devices, messages and events."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.cache.store import Change
from mockube.client.component_helpers.device_claims import has_extended_resources, may_need_devices
from mockube.client.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.scheduler.choice import find_feasible
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.devices.claims import DeviceSnapshot, allocate
from mockube.scheduler.devices.extended_resources import (
    ExtendedResourceClasses,
    owner_of_extended_resource_claim,
    requests_for,
)
from mockube.scheduler.filters.devices import check_claims
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.requeueing import ClusterEvent, event_of, is_worth_requeuing
from mockube.scheduler.requeueing import node_actions as actions_of
from mockube.scheduler.volumes import Storage
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.scheduler_objects import failure_on
from tests.support.controllers.scheduler_profiles import profile_of

PREFIX = "deviceclass.resource.kubernetes.io/"
GPU, IMPLICIT = "example.com/gpu", f"{PREFIX}gpu"
EARLY, LATE = "2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z"


def device_class(name="gpu", resource=GPU, created=EARLY):
    spec = {} if resource is None else {"extendedResourceName": resource}
    return {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}


def container(name="c", restart=None, **requests):
    names = {"gpu": GPU, "implicit": IMPLICIT}
    named = {names.get(one, one): str(amount) for one, amount in requests.items()}
    policy = {"restartPolicy": restart} if restart else {}
    return {"name": name, "resources": {"requests": named}, **policy}


def pod(*containers, init=(), **spec):
    metadata = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    spec = {"containers": list(containers), "initContainers": list(init), **spec}
    return PodView.of({"metadata": metadata, "spec": spec, "status": {}})


# --- classes


def provided(*changes):
    classes = ExtendedResourceClasses()
    for change in changes:
        classes.handle(Change(*change))
    return {name: one["metadata"]["name"] for name, one in classes.by_resource.items()}


def test_class_provides_named_and_implicit_resource():
    assert provided((None, device_class())) == {GPU: "gpu", IMPLICIT: "gpu"}
    assert provided((None, device_class(resource=None))) == {IMPLICIT: "gpu"}
    renamed = device_class(resource="example.com/b")
    assert provided((None, device_class()), (device_class(), renamed)) == {
        "example.com/b": "gpu",
        IMPLICIT: "gpu",
    }
    assert provided((None, device_class()), (device_class(), None)) == {}


@pytest.mark.parametrize(
    ("other", "winner"),
    [
        (device_class("newer", created=LATE), "newer"),
        (device_class("a-first"), "a-first"),
        (device_class("later-by-name"), "gpu"),
    ],
)
def test_newest_class_provides_resource_that_several_name(other, winner):
    assert provided((None, device_class()), (None, other))[GPU] == winner


def test_class_that_names_resource_of_preferred_class_provides_nothing():
    preferred, other = device_class(created=LATE), device_class("other")
    assert provided((None, preferred), (None, other)) == {GPU: "gpu", IMPLICIT: "gpu"}


def test_class_still_provides_old_resource_if_preferred_class_has_new_one():
    old, preferred = device_class("other", resource="example.com/b"), device_class(created=LATE)
    before = {"example.com/b": "other", f"{PREFIX}other": "other", GPU: "gpu", IMPLICIT: "gpu"}
    assert provided((None, old), (None, preferred), (old, device_class("other"))) == before


@pytest.mark.parametrize("new", [None, device_class("other", resource=None)], ids=["deleted", "renamed"])
def test_resource_is_removed_with_class_that_does_not_provide_it(new):
    preferred, other = device_class(created=LATE), device_class("other")
    implicit = {} if new is None else {f"{PREFIX}other": "other"}
    assert provided((None, preferred), (None, other), (other, new)) == {IMPLICIT: "gpu", **implicit}


def test_update_of_class_with_same_resource_keeps_cached_class():
    classes, old = ExtendedResourceClasses(), device_class()
    new = {**old, "spec": {**old["spec"], "selectors": []}}
    for change in (Change(None, old), Change(old, new)):
        classes.handle(change)
    assert classes.by_resource == {GPU: old, IMPLICIT: old}


# --- requests


def requests_of(spec, *resources):
    classes = {name: device_class() for name in resources or (GPU,)}
    found = requests_for(spec.object["spec"], classes, classes)
    requests = {one["name"]: one["exactly"]["count"] for one in found.requests}
    return requests, [(one["containerName"], one["requestName"]) for one in found.mappings]


def test_containers_that_run_together_have_own_requests():
    asked = pod(container("a", cpu=1, gpu=2), container("b"), init=[container("s", "Always", gpu=1)])
    assert requests_of(asked) == (
        {"container-0-request-0": 1, "container-1-request-1": 2},
        [("s", "container-0-request-0"), ("a", "container-1-request-1")],
    )


def test_init_containers_use_requests_of_later_containers():
    asked = pod(
        container("a", gpu=2), container("b", gpu=2), init=[container("i", gpu=1), container("j", gpu=3)]
    )
    assert requests_of(asked) == (
        {"container-2-request-0": 2, "container-3-request-0": 2},
        [
            ("a", "container-2-request-0"),
            ("b", "container-3-request-0"),
            ("i", "container-2-request-0"),
            ("j", "container-2-request-0"),
            ("j", "container-3-request-0"),
        ],
    )


def test_init_containers_share_request_for_missing_devices():
    asked = pod(container("a", gpu=1), init=[container("i", gpu=2), container("j", gpu=4)])
    assert requests_of(asked) == (
        {"container-1-request-0": 3, "container-2-request-0": 1},
        [
            ("a", "container-2-request-0"),
            ("i", "container-2-request-0"),
            ("i", "container-1-request-0"),
            ("j", "container-2-request-0"),
            ("j", "container-1-request-0"),
        ],
    )


def test_each_resource_has_requests():
    assert requests_of(pod(container(gpu=1, implicit=2)), GPU, IMPLICIT) == (
        {"container-0-request-0": 2, "container-0-request-1": 1},
        [("c", "container-0-request-0"), ("c", "container-0-request-1")],
    )


# --- decisions


def snapshot(*claims, devices=2, minor="1.37", gpus=None, classes=True):
    cluster = SchedulerCache()
    allocatable = {"pods": "9", "cpu": "4", **({} if gpus is None else {GPU: gpus})}
    cluster.set_node({"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": allocatable}})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"g{number}"} for number in range(devices)]
    resource_slice = {"driver": "d", "pool": pool, "allNodes": True, "devices": listed}
    caches = FakeCaches({RESOURCE_CLAIMS: claims, DEVICE_CLASSES: [device_class()]})
    extended = ExtendedResourceClasses()
    extended.handle(Change(None, device_class()))
    stored = caches.of(RESOURCE_CLAIMS)
    return ClusterSnapshot(
        nodes=cluster.nodes(),
        labels_of_namespace=lambda _: {},
        storage=Storage(claims=stored, volumes=stored, classes=stored),
        gates=FeatureGates(minor),
        devices=DeviceSnapshot(
            claims=stored,
            classes=caches.of(DEVICE_CLASSES),
            slices=lambda _: [{"metadata": {"name": "s"}, "spec": resource_slice}],
            in_use=(),
            in_flight={},
            gates=FeatureGates(minor),
            extended_classes=extended.by_resource if classes else {},
            extended_resource_claim=lambda uid: next((one for one in claims if one["owner"] == uid), None),
        ),
    )


CLAIM_OF_POD = {"metadata": {"name": "old", "namespace": "default", "uid": "o"}, "spec": {}, "owner": "u"}


def message(view, seen):
    info = PodInfo.of(view, FeatureGates())
    found = find_feasible(info, seen)
    return "" if found.feasible else failure_on(info, seen, found, ()).message


HELPS_NOT = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("asked", "options", "reason"),
    [
        (2, {}, ""),
        (3, {}, "cannot allocate all claims"),
        (3, {"gpus": "0"}, "cannot allocate all claims"),
        (3, {"gpus": "3"}, ""),
        (3, {"gpus": "2"}, f"Insufficient {GPU}"),
        (1, {"classes": False}, f"Insufficient {GPU}"),
    ],
)
def test_nodes_need_devices_or_own_resource(asked, options, reason):
    expected = f"0/1 nodes are available: 1 {reason}. {HELPS_NOT}" if reason else ""
    assert message(pod(container(gpu=asked)), snapshot(**options)) == expected


def test_pod_before_1_37_learns_that_no_claim_helps():
    assert message(pod(container(gpu=3)), snapshot(minor="1.36")) == (
        f"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, {HELPS_NOT}"
    )


def test_claim_of_earlier_attempt_is_deleted():
    seen, info = snapshot(CLAIM_OF_POD), PodInfo.of(pod(container(gpu=1)), FeatureGates())
    failure = failure_on(info, seen, find_feasible(info, seen), ())
    assert failure.stale_claim == CLAIM_OF_POD
    assert failure.message == (
        "0/1 nodes are available: 1 cannot schedule extended resource claim. "
        f"deletion of ResourceClaim completed, {HELPS_NOT}"
    )


def test_profile_without_devices_deletes_no_claim():
    seen, info = snapshot(CLAIM_OF_POD), PodInfo.of(pod(container(gpu=1, cpu=9)), FeatureGates())
    plugins = {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
    profile = profile_of({"plugins": plugins})
    failure = failure_on(info, seen, find_feasible(info, seen, profile), (), profile)
    assert (failure.stale_claim, "deletion" in failure.message) == (None, False)


def test_claim_is_stale_only_if_it_belongs_to_a_pod():
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    annotation = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}
    for metadata, owners in (
        ({"ownerReferences": [owner], **annotation}, ["u"]),
        ({"ownerReferences": [owner]}, []),
        (annotation, []),
    ):
        assert [*owner_of_extended_resource_claim({"metadata": {"name": "c", **metadata}})] == owners


def test_init_container_without_the_resource_has_no_request():
    asked = pod(container("a", gpu=1), init=[container("i", cpu=1)])
    assert requests_of(asked) == ({"container-1-request-0": 1}, [("a", "container-1-request-0")])


def test_sidecar_that_starts_before_an_init_container_leaves_it_nothing():
    asked = pod(container("a", cpu=1), init=[container("s", "Always", gpu=1), container("i", gpu=1)])
    assert requests_of(asked) == (
        {"container-0-request-0": 1, "container-1-request-0": 1},
        [("s", "container-0-request-0"), ("i", "container-1-request-0")],
    )


def test_pod_whose_resource_no_class_provides_needs_no_devices():
    for resource, needs in (("example.com/other", False), ("gpu", True)):
        info = PodInfo.of(pod(container(**{resource: 1})), FeatureGates())
        assert (check_claims(info, snapshot().devices) is not None) is needs


def test_claim_belongs_to_pod():
    info, seen = PodInfo.of(pod(container(gpu=1)), FeatureGates()), snapshot()
    reservation = allocate(info, seen.nodes[0], seen.devices, EARLY)
    metadata = reservation.extended["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    assert metadata["ownerReferences"] == [owner]
    assert metadata["generateName"] == "p-extended-resources-"
    assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [one["devices"]["results"][0]["device"] for one in reservation.allocations.values()] == ["g0"]


# --- gates and events


@pytest.mark.parametrize(
    ("minor", "settings", "is_on"),
    [
        ("1.37", (), True),
        ("1.36", (), True),
        ("1.36", [("DRAExtendedResource", False)], False),
        ("1.35", (), False),
        ("1.35", [("DRAExtendedResource", True)], False),
    ],
)
def test_minors_with_extended_resources(minor, settings, is_on):
    gates = FeatureGates(minor, settings)
    assert has_extended_resources(gates) is is_on
    assert may_need_devices(pod(container(gpu=1)), gates) is is_on
    assert may_need_devices(pod(container(), init=[container(implicit=1)]), gates) is is_on
    assert not may_need_devices(pod(container(cpu=1)), gates)


def node(**allocatable):
    return {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"pods": "9", **allocatable}}}


def node_event(old, new, by_devices=(GPU,)):
    return ClusterEvent("Node", actions_of(old, new), old, new, by_devices)


def class_event(old, new):
    return event_of("DeviceClass", old, new)


@pytest.mark.parametrize(
    ("event", "is_worth"),
    [
        (class_event(None, device_class()), True),
        (class_event(None, device_class("other", None)), False),
        (class_event(device_class("other", None), device_class("other")), True),
        (class_event(device_class(), device_class()), False),
        (class_event(device_class(), None), False),
        (node_event(None, node()), True),
        (node_event(None, node(), ()), False),
        (node_event(node(cpu="1"), node(cpu="2")), True),
    ],
)
def test_events_that_may_provide_resource(event, is_worth):
    assert is_worth_requeuing(pod(container(gpu=1)), {"NodeResourcesFit"}, event, FeatureGates()) is is_worth


def test_new_class_may_provide_implicit_resource():
    event = class_event(None, device_class(resource=None))
    assert is_worth_requeuing(pod(container(implicit=1)), {"NodeResourcesFit"}, event, FeatureGates())

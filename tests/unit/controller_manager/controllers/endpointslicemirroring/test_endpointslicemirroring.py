from datetime import UTC, datetime

import pytest

from mockube.client.kinds import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Create, Delete, RecordEvent, Update
from mockube.controller_manager.controllers.endpointslicemirroring.controller import (
    BY_MIRRORED,
    by_mirrored,
    reconcile,
)
from tests.support.controllers.fake_caches import FakeCaches

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = Key("default", "web")
SERVICE = {"metadata": {"name": "web", "namespace": "default"}, "spec": {}}
PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}]
LABELS = {
    "team": "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
}


def endpoints(*addresses, waiting=(), **metadata):
    named = {"name": "web", "namespace": "default", "uid": "uid-web", "labels": {"team": "a"}}
    subset = {
        "addresses": [{"ip": ip} for ip in addresses],
        "notReadyAddresses": [{"ip": ip} for ip in waiting],
        "ports": PORTS,
    }
    return {"metadata": named | metadata, "subsets": [subset]}


def planned_actions(mirrored, slices=(), service=SERVICE):
    objects = {
        SERVICES: [] if service is None else [service],
        ENDPOINTS: [] if mirrored is None else [mirrored],
        ENDPOINT_SLICES: slices,
    }
    return reconcile(FakeCaches(objects, {ENDPOINT_SLICES: {BY_MIRRORED: by_mirrored}}), KEY, NOW).actions


def created_slices(actions):
    return [
        action.bodies[0]
        | {"metadata": action.bodies[0]["metadata"] | {"name": f"web-{at}", "uid": f"slice-{at}"}}
        for at, action in enumerate(actions)
        if isinstance(action, Create)
    ]


def test_endpoints_are_mirrored_to_slice():
    (slice_,) = created_slices(
        planned_actions(endpoints("10.1.1.1", waiting=["10.1.1.2"], annotations={"a": "b"}))
    )
    assert slice_["metadata"] == {
        "generateName": "web-",
        "name": "web-0",
        "uid": "slice-0",
        "namespace": "default",
        "labels": LABELS,
        "annotations": {"a": "b"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "name": "web",
                "uid": "uid-web",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert slice_["ports"] == PORTS
    assert slice_["endpoints"] == [
        {"addresses": ["10.1.1.1"], "conditions": {"ready": True}},
        {"addresses": ["10.1.1.2"], "conditions": {"ready": False}},
    ]


def test_each_family_is_mirrored_to_own_slice():
    slices = created_slices(planned_actions(endpoints("10.1.1.1", "fd00::1")))
    assert [one["addressType"] for one in slices] == ["IPv4", "IPv6"]


def test_unchanged_mirror_is_not_written():
    mirrored = endpoints("10.1.1.1")
    assert planned_actions(mirrored, created_slices(planned_actions(mirrored))) == ()


def test_changed_endpoints_update_mirror():
    slices = created_slices(planned_actions(endpoints("10.1.1.1")))
    (update,) = planned_actions(endpoints("10.1.1.2"), slices)
    assert isinstance(update, Update)
    assert [one["addresses"] for one in update.body["endpoints"]] == [["10.1.1.2"]]


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"lock": "two"}}, id="annotations"),
        pytest.param({"labels": {"team": "b"}, "annotations": {"lock": "one"}}, id="labels"),
        pytest.param({"uid": "uid-other", "annotations": {"lock": "one"}}, id="owner"),
    ],
)
def test_changed_metadata_updates_mirror(metadata):
    slices = created_slices(planned_actions(endpoints("10.1.1.1", annotations={"lock": "one"})))
    (update,) = planned_actions(endpoints("10.1.1.1", **metadata), slices)
    (created,) = created_slices(planned_actions(endpoints("10.1.1.1", **metadata)))
    assert update.body["metadata"] | {"generateName": "web-"} == created["metadata"]


def test_subsets_with_equal_addresses_share_slice_with_sorted_ports():
    mirrored = endpoints()
    subset = {"addresses": [{"ip": "10.1.1.1"}]}
    ports = [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 81, "protocol": "TCP"}]
    mirrored["subsets"] = [subset | {"ports": [port]} for port in ports]
    (slice_,) = created_slices(planned_actions(mirrored))
    assert slice_["ports"] == ports[::-1]
    assert planned_actions(mirrored, [slice_ | {"ports": ports}]) == ()


def test_deleted_endpoints_have_no_new_slices():
    assert planned_actions(endpoints("10.1.1.1", deletionTimestamp="2030-01-01T00:00:00Z")) == ()


def test_addresses_over_maximum_are_skipped_with_event():
    addresses = [f"10.1.{at // 250}.{at % 250 + 1}" for at in range(1003)]
    create, event = planned_actions(endpoints(*addresses))
    assert len(create.bodies[0]["endpoints"]) == 1000
    assert isinstance(event, RecordEvent)
    assert event.reason == "TooManyAddressesToMirror"
    assert event.message == (
        "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. "
        "3 addresses were skipped"
    )


@pytest.mark.parametrize(
    ("mirrored", "service"),
    [
        pytest.param(None, SERVICE, id="no endpoints"),
        pytest.param(endpoints("10.1.1.1"), None, id="no service"),
        pytest.param(
            endpoints("10.1.1.1"), SERVICE | {"spec": {"selector": {"a": "b"}}}, id="a service that selects"
        ),
        pytest.param(
            endpoints("10.1.1.1", labels={"endpointslice.kubernetes.io/skip-mirror": "true"}),
            SERVICE,
            id="not to be mirrored",
        ),
        pytest.param(
            endpoints("10.1.1.1", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}),
            SERVICE,
            id="a lock",
        ),
    ],
)
def test_unmirrored_endpoints_have_no_slices(mirrored, service):
    assert planned_actions(mirrored, service=service) == ()
    (delete,) = planned_actions(mirrored, created_slices(planned_actions(endpoints("10.1.1.1"))), service)
    assert isinstance(delete, Delete)


def test_second_slice_of_equal_ports_is_deleted():
    mirrored = endpoints("10.1.1.1")
    (slice_,) = created_slices(planned_actions(mirrored))
    twin = {**slice_, "metadata": slice_["metadata"] | {"name": "twin", "uid": "uid-twin"}}
    (delete,) = planned_actions(mirrored, [slice_, twin])
    assert [ref.key.name for ref in delete.objects] == ["twin"]


def test_slice_of_other_ports_is_reused_within_its_family():
    slices = created_slices(planned_actions(endpoints("10.1.1.1", "fd00::1")))
    other = endpoints("fd00::1")
    other["subsets"][0]["ports"] = [{"name": "https", "port": 443, "protocol": "TCP"}]
    update, delete = planned_actions(other, slices)
    assert (update.body["metadata"]["name"], update.body["addressType"]) == ("web-1", "IPv6")
    assert update.body["ports"][0]["port"] == 443
    assert [ref.key.name for ref in delete.objects] == ["web-0"]


def test_slice_of_another_family_is_not_reused():
    slices = created_slices(planned_actions(endpoints("10.1.1.1")))
    create, delete = planned_actions(endpoints("fd00::1"), slices)
    assert isinstance(create, Create)
    assert isinstance(delete, Delete)


@pytest.mark.parametrize(
    "change",
    [
        {"nodeName": "n"},
        {"hostname": "h"},
        {"targetRef": {"kind": "Pod", "name": "p", "namespace": "default"}},
    ],
)
def test_changed_field_of_an_address_updates_the_mirror(change):
    slices = created_slices(planned_actions(endpoints("10.1.1.1")))
    changed = endpoints()
    changed["subsets"][0]["addresses"] = [{"ip": "10.1.1.1", **change}]
    (update,) = planned_actions(changed, slices)
    assert update.body["endpoints"] == [{"addresses": ["10.1.1.1"], "conditions": {"ready": True}, **change}]


def test_address_that_becomes_ready_updates_the_mirror():
    slices = created_slices(planned_actions(endpoints(waiting=["10.1.1.1"])))
    (update,) = planned_actions(endpoints("10.1.1.1"), slices)
    assert update.body["endpoints"][0]["conditions"] == {"ready": True}


def test_version_of_the_target_does_not_update_the_mirror():
    mirrored = endpoints()
    target = {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    mirrored["subsets"][0]["addresses"] = [{"ip": "10.1.1.1", "targetRef": target}]
    slices = created_slices(planned_actions(mirrored))
    mirrored["subsets"][0]["addresses"] = [
        {"ip": "10.1.1.1", "targetRef": {**target, "resourceVersion": "2"}}
    ]
    assert planned_actions(mirrored, slices) == ()


def test_address_is_ready_if_each_subset_says_so():
    mirrored = endpoints("10.1.1.1", waiting=["10.1.1.1"])
    (slice_,) = created_slices(planned_actions(mirrored))
    assert [each["conditions"]["ready"] for each in slice_["endpoints"]] == [False]


def test_ready_addresses_are_first_and_sorted():
    (slice_,) = created_slices(planned_actions(endpoints("10.1.1.9", "10.1.1.4", waiting=["10.1.1.1"])))
    assert [each["addresses"][0] for each in slice_["endpoints"]] == ["10.1.1.4", "10.1.1.9", "10.1.1.1"]


def test_own_annotations_of_endpoints_are_not_mirrored():
    own = {
        "endpoints.kubernetes.io/last-change-trigger-time": "2030-01-01T00:00:00Z",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    mirrored = endpoints("10.1.1.1", annotations={**own, "a": "b"})
    (slice_,) = created_slices(planned_actions(mirrored))
    assert slice_["metadata"]["annotations"] == {"a": "b"}
    assert planned_actions(mirrored, [slice_]) == ()


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({}, False),
        ({"uid": "former"}, True),
        ({"uid": "x", "name": "api"}, False),
        ({"uid": "x", "kind": "Service"}, False),
    ],
)
def test_slice_of_deleted_endpoints_of_the_same_name_is_updated(owner, expected):
    mirrored = endpoints("10.1.1.1")
    (slice_,) = created_slices(planned_actions(mirrored))
    (reference,) = slice_["metadata"]["ownerReferences"]
    slice_["metadata"]["ownerReferences"] = [reference | owner]
    assert bool(planned_actions(mirrored, [slice_])) is expected

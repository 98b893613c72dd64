"""What a kubelet corrects in the status of its node, by the rules of kubelet/nodestatus/setters.go."""

import pytest

from mockube.kubelet.node_pools.pool import NodePool
from mockube.kubelet.node_status import correction, reservations

ADDRESSES = [{"type": "InternalIP", "address": "172.18.0.1"}]
MACHINE = {"cpu": "4", "memory": "16Gi"}


def node(capacity, allocatable, **status):
    status = {"capacity": capacity, "allocatable": allocatable, "addresses": ADDRESSES, **status}
    return {"metadata": {"name": "node-1"}, "status": status}


def changes(capacity, allocatable, *, pool=None, reserved=None):
    patch = correction(node(capacity, allocatable), pool, reserved or {}, address="172.18.0.1", version="")
    return None if patch is None else patch["status"]


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        pytest.param({"a.b/x": "4"}, {"a.b/x": "4"}, None, id="nothing to do"),
        pytest.param({"a.b/x": "4"}, {}, {"a.b/x": "4"}, id="added"),
        pytest.param({"a.b/x": "6"}, {"a.b/x": "4"}, {"a.b/x": "6"}, id="raised"),
        pytest.param({"a.b/x": "2"}, {"a.b/x": "4"}, {"a.b/x": "2"}, id="lowered"),
        pytest.param(
            {"a.b/x": "4"}, {"a.b/x": "3"}, {"a.b/x": "4"}, id="only the allocatable amount changed"
        ),
        pytest.param({"a.b/x": "0"}, {"a.b/x": "4"}, {"a.b/x": "0"}, id="zeroed"),
        pytest.param({"a.b/x": "1k"}, {"a.b/x": "1000"}, None, id="equal amounts"),
        pytest.param({}, {"a.b/x": "4"}, {"a.b/x": None}, id="removed"),
        pytest.param({}, {"cpu": "4"}, None, id="removed resource of the machine stays allocatable"),
        pytest.param({"cpu": "2"}, {"cpu": "4"}, {"cpu": "2"}, id="smaller machine"),
        pytest.param({"cpu": "4"}, {"cpu": "2"}, None, id="less of a machine's resource to allocate"),
        pytest.param({"cpu": "4"}, {}, {"cpu": "4"}, id="missing resource of the machine"),
        pytest.param({"kubernetes.io/x": "4"}, {"kubernetes.io/x": "3"}, None, id="no extended resource"),
    ],
)
def test_allocatable_follows_capacity(capacity, allocatable, expected):
    assert changes(capacity, allocatable) == (expected and {"allocatable": expected})


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        pytest.param({"cpu": "4"}, {"cpu": "3500m"}, None, id="nothing to do"),
        pytest.param({"cpu": "2"}, {"cpu": "3500m"}, {"cpu": "1500m"}, id="smaller machine"),
        pytest.param({"cpu": "4"}, {"cpu": "4"}, {"cpu": "3500m"}, id="more to allocate than there is"),
        pytest.param({"cpu": "100m"}, {"cpu": "3500m"}, {"cpu": "0"}, id="never negative"),
        pytest.param({"a.b/x": "8"}, {"a.b/x": "8"}, {"a.b/x": "7"}, id="reserved device"),
    ],
)
def test_reservation_is_not_allocatable(capacity, allocatable, expected):
    reserved = reservations({"cpu": "4", "a.b/x": "8"}, {"cpu": "3500m", "a.b/x": "7"})
    assert changes(capacity, allocatable, reserved=reserved) == (expected and {"allocatable": expected})


def test_only_what_is_less_than_the_capacity_is_reserved():
    found = reservations({"cpu": "4", "a.b/x": "1", "a.b/y": "1"}, {"cpu": "4", "a.b/x": "2"})
    assert found == {}


def test_resource_of_the_pool_that_a_client_removed_is_restored():
    pool = NodePool(count=1, capacity={**MACHINE, "a.b/gpu": "8"}, allocatable={**MACHINE, "a.b/gpu": "8"})
    capacity = {"memory": "8Gi", "a.b/dongle": "4"}
    assert changes(capacity, {**MACHINE, "a.b/gpu": "8"}, pool=pool) == {
        "capacity": {"cpu": "4", "a.b/gpu": "8"},
        "allocatable": {"memory": "8Gi", "a.b/dongle": "4"},
    }


def test_missing_addresses_are_restored_and_others_are_kept():
    present = node(MACHINE, MACHINE, addresses=[])
    addresses = [*ADDRESSES, {"type": "Hostname", "address": "node-1"}]
    assert correction(present, None, {}, address="172.18.0.1", version="") == {
        "status": {"addresses": addresses}
    }
    mine = node(MACHINE, MACHINE, addresses=[{"type": "ExternalIP", "address": "192.0.2.1"}])
    assert correction(mine, None, {}, address="172.18.0.1", version="") is None


def test_node_without_a_status_gets_addresses_only():
    patch = correction({"metadata": {"name": "fake"}}, None, {}, address="172.18.0.9", version="")
    assert [*patch["status"]] == ["addresses"]


@pytest.mark.parametrize(
    ("version", "info"),
    [
        ("v1.37.2", {"kubeletVersion": "v1.37.2", "runningInUserNamespace": False}),
        ("v1.34.4", {"kubeletVersion": "v1.34.4", "runningInUserNamespace": None}),
        ("v1.36.3", None),
        ("", None),
    ],
)
def test_version_of_the_kubelet_is_corrected(version, info):
    present = node(MACHINE, MACHINE, nodeInfo={"kubeletVersion": "v1.36.3", "osImage": "mine"})
    patch = correction(present, None, {}, address="", version=version)
    assert patch == (info and {"status": {"nodeInfo": info}})

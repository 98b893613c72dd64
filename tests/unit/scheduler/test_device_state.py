"""The scheduler's state of devices: which are in use, and which slices a node sees."""

import asyncio

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.schema.minors import NEWEST
from mockube.client.cache.store import Change
from mockube.client.kinds import DEVICE_CLASSES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, RESOURCE_SLICES
from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import start
from mockube.scheduler.devices.claims import waits_for_claims
from mockube.scheduler.devices.pools import DeviceId
from mockube.scheduler.devices.state import MAX_SYNC_SECONDS, DeviceState
from tests.support.controllers.devices import claim, pod, request, slices, spec
from tests.support.controllers.fake_caches import FakeCaches

NOW = "2030-01-01T00:00:00Z"


class Informer:
    def __init__(self):
        self.handlers, self.objects, self.indexes = [], {}, {}
        self.lister = self
        self.synced = asyncio.Event()

    async def wait_synced(self):
        await self.synced.wait()

    def add_handler(self, handler):
        self.handlers.append(handler)

    def add_index(self, name, function):
        self.indexes[name] = function

    def by_index(self, name, value):
        return [one for one in self.objects.values() if value in self.indexes[name](one)]

    def all(self):
        return self.objects.values()

    def get(self, _, name):
        return self.objects.get(name)

    def put(self, tree):
        old = self.objects.get(meta.name(tree))
        self.objects[meta.name(tree)] = tree
        self.notify(Change(old, tree))

    def drop(self, name):
        self.notify(Change(self.objects.pop(name), None))

    def notify(self, change):
        for handler in self.handlers:
            handler(change)


class Informers:
    def __init__(self, minor=NEWEST):
        self.all = {}
        self.caches = FakeCaches({}, minor=minor)

    def of(self, resource):
        return self.all.setdefault(resource, Informer())


@pytest.fixture
def informers():
    return Informers()


@pytest.fixture
def state(informers):
    return DeviceState(informers, lambda *_: None, lambda _: None)


ALLOCATED = {"devices": {"results": [{"driver": "d", "pool": "p", "device": "g0"}]}}
G0 = DeviceId("d", "p", "g0")


def test_assumed_allocation_counts_until_cached(informers, state):
    claims = informers.of(RESOURCE_CLAIMS)
    claims.put(claim(spec(request())))
    state.assume({"uid-c": ALLOCATED})
    assert G0 in state.snapshot().in_use
    claims.put(claim(spec(request())))
    assert G0 in state.snapshot().in_use
    claims.put(claim(spec(request()), status={"allocation": ALLOCATED}))
    assert not state.snapshot().in_flight
    state.forget(["uid-c"])
    assert G0 in state.snapshot().in_use


def test_node_changes_with_its_slices_and_their_use(informers):
    changed = []
    state = DeviceState(informers, lambda *_: None, changed.append)
    informers.of(RESOURCE_SLICES).put(slices(1, nodeName="a")[0])
    assert changed == ["a"]
    informers.of(RESOURCE_SLICES).put(slices(2, nodeName="b")[0])
    assert changed == ["a", "a", "b"]
    changed.clear()
    state.assume({"uid-c": ALLOCATED})
    assert changed == ["b"]
    state.forget(["uid-c"])
    assert changed == ["b", "b"]
    changed.clear()
    claims = informers.of(RESOURCE_CLAIMS)
    claims.put(claim(spec(request()), status={"allocation": ALLOCATED}))
    claims.put(claim(spec(request()), status={"allocation": ALLOCATED}))
    assert changed == ["b"]
    claims.drop("c")
    assert changed == ["b", "b"]


@pytest.mark.parametrize(
    ("place", "is_of_single_nodes"),
    [({"nodeName": "a"}, True), ({"allNodes": True}, False), ({"nodeSelector": {}}, False)],
)
def test_devices_of_several_nodes_are_known(informers, state, place, is_of_single_nodes):
    assert state.snapshot().is_of_single_nodes
    informers.of(RESOURCE_SLICES).put(slices(1, **place)[0])
    assert state.snapshot().is_of_single_nodes is is_of_single_nodes
    if is_of_single_nodes:
        informers.of(DEVICE_TAINT_RULES).put({"metadata": {"name": "rule"}})
        assert not state.snapshot().is_of_single_nodes


def test_released_assumed_allocation_is_free(state):
    state.assume({"uid-c": ALLOCATED})
    state.forget(["uid-c"])
    assert G0 not in state.snapshot().in_use


@pytest.mark.parametrize("goes", [True, False], ids=["deleted", "deallocated"])
def test_released_devices_are_free(informers, state, goes):
    claims = informers.of(RESOURCE_CLAIMS)
    claims.put(claim(spec(request()), status={"allocation": ALLOCATED}))
    assert G0 in state.snapshot().in_use
    if goes:
        claims.drop("c")
    else:
        claims.put(claim(spec(request())))
    assert G0 not in state.snapshot().in_use


def test_node_sees_own_and_shared_slices(informers, state):
    for name, place in (("a", {"nodeName": "na"}), ("b", {"nodeName": "nb"}), ("c", {"allNodes": True})):
        (one,) = slices(1, **place)
        informers.of(RESOURCE_SLICES).put({**one, "metadata": {"name": name}})
    assert [meta.name(one) for one in state.snapshot().slices("nb")] == ["b", "c"]


async def test_sync_of_devices_is_awaited(informers, state):
    waiting = start("sync", state.wait_synced(SteppedClock()))
    for resource in (RESOURCE_CLAIMS, DEVICE_CLASSES, RESOURCE_SLICES, DEVICE_TAINT_RULES):
        await asyncio.wait([waiting], timeout=0)
        assert not waiting.done()
        informers.of(resource).synced.set()
    await waiting


async def test_sync_of_unserved_devices_ends(state):
    clock = SteppedClock()
    waiting = start("sync", state.wait_synced(clock))
    await asyncio.wait([waiting], timeout=0)
    clock.advance(MAX_SYNC_SECONDS)
    await waiting
    await state.wait_synced(clock)


def test_pod_waits_for_its_claims(informers, state):
    claims = informers.of(RESOURCE_CLAIMS)
    view = pod("c").view
    assert waits_for_claims(view, claims)
    claims.put(claim(spec(request())))
    assert not waits_for_claims(view, claims)
    going = claim(spec(request()))
    going["metadata"]["deletionTimestamp"] = NOW
    claims.put(going)
    assert waits_for_claims(view, claims)
    made = PodView.of(
        {**view.object, "spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}}
    )
    assert waits_for_claims(made, claims)
    named = PodView.of({**made.object, "status": {"resourceClaimStatuses": [{"name": "c"}]}})
    assert not waits_for_claims(named, claims)


def test_released_allocation_moves_the_pods_that_wait_for_claims(informers):
    events = []
    state = DeviceState(informers, lambda *event: events.append(event), lambda _: None)
    state.forget(["uid-c"])
    assert events == [("ResourceClaim", None)]


def test_class_of_an_extended_resource_is_known(informers):
    events = []
    state = DeviceState(informers, lambda kind, _: events.append(kind), lambda _: None)
    handled = []
    state._extended_classes.handle = handled.append
    informers.of(DEVICE_CLASSES).put(
        {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "e.x/gpu"}}
    )
    assert (events, len(handled)) == (["DeviceClass"], 1)


def of_devices(rule, *, effect="NoSchedule"):
    """Return a DeviceTaintRule for the devices that a selector matches."""
    spec = {"taint": {"key": "broken", "effect": effect}, "deviceSelector": rule}
    return {"metadata": {"name": "rule"}, "spec": spec}


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({"device": "g1"}, ["g1"]),
        ({"driver": "d", "pool": "p"}, ["g0", "g1"]),
        ({"driver": "other"}, []),
        ({"pool": "other"}, []),
        ({}, ["g0", "g1"]),
        (None, []),
    ],
)
def test_rule_taints_the_devices_that_it_selects(informers, state, selector, tainted):
    informers.of(RESOURCE_SLICES).put(slices(2, nodeName="a")[0])
    informers.of(DEVICE_TAINT_RULES).put(of_devices(selector))
    (one,) = state.snapshot().slices("a")
    devices = one["spec"]["devices"]
    assert [device["name"] for device in devices if "taints" in device] == tainted
    assert all(device.get("taints", [{"key": "broken"}])[0]["key"] == "broken" for device in devices)


def test_rule_adds_its_taint_to_those_of_a_device(informers, state):
    (one,) = slices(1, nodeName="a")
    one["spec"]["devices"][0]["taints"] = [{"key": "old"}]
    informers.of(RESOURCE_SLICES).put(one)
    informers.of(DEVICE_TAINT_RULES).put(of_devices({}))
    (tainted,) = state.snapshot().slices("a")
    assert [taint["key"] for taint in tainted["spec"]["devices"][0]["taints"]] == ["old", "broken"]


def test_change_of_a_rule_is_one_of_slices(informers):
    events = []
    DeviceState(informers, lambda *event: events.append(event), lambda _: None)
    informers.of(DEVICE_TAINT_RULES).put(of_devices({}))
    assert events == [("ResourceSlice", None)]


async def test_rules_are_read_since_1_37():
    informers = Informers("1.36")
    state = DeviceState(informers, lambda *_: None, lambda _: None)
    informers.of(RESOURCE_SLICES).put(slices(1, nodeName="a")[0])
    assert state.snapshot().is_of_single_nodes
    assert len(state.snapshot().slices("a")) == 1
    assert DEVICE_TAINT_RULES not in informers.all


def test_classes_provide_extended_resources_since_1_36():
    gpu = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "e.x/gpu"}}
    for minor, count in (("1.36", 2), ("1.35", 0)):
        informers = Informers(minor)
        state = DeviceState(informers, lambda *_: None, lambda _: None)
        informers.of(DEVICE_CLASSES).put(gpu)
        assert len(state.extended_resources) == count


def test_slices_of_a_pool_are_found(informers, state):
    for name, pool in (("a", "p"), ("b", "q")):
        (one,) = slices(1, nodeName="a")
        one["spec"]["pool"] = {**one["spec"]["pool"], "name": pool}
        informers.of(RESOURCE_SLICES).put({**one, "metadata": {"name": name}})
    assert [meta.name(one) for one in state.snapshot().slices_of_pool("d", "q")] == ["b"]


def test_claim_for_extended_resources_is_found_by_its_pod(informers, state):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    metadata = {
        "name": "c",
        "namespace": "default",
        "uid": "uid-c",
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    of_pod = {"metadata": metadata, "spec": {}}
    informers.of(RESOURCE_CLAIMS).put(of_pod)
    assert state.snapshot().extended_resource_claim("p") == of_pod
    assert state.snapshot().extended_resource_claim("q") is None


def test_device_of_two_claims_is_in_use_until_both_are_gone(informers, state):
    claims = informers.of(RESOURCE_CLAIMS)
    for name in "ab":
        claims.put(claim(spec(request()), name, status={"allocation": ALLOCATED}))
    claims.drop("a")
    assert G0 in state.snapshot().in_use
    claims.drop("b")
    assert G0 not in state.snapshot().in_use


@pytest.mark.parametrize(("owner", "waits"), [("p", False), ("other", True), (None, True)])
def test_claim_from_a_template_belongs_to_its_pod(informers, owner, waits):
    made = claim(spec(request()), "c-x")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
    made["metadata"]["ownerReferences"] = [reference] if owner else []
    informers.of(RESOURCE_CLAIMS).put(made)
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
    view = PodView.of(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {"resourceClaims": claims},
            "status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "c-x"}]},
        }
    )
    assert waits_for_claims(view, informers.of(RESOURCE_CLAIMS)) is waits

"""Device allocation matches the allocations and messages of kube-scheduler in `allocations.jsonl`."""

import asyncio
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.apimachinery import meta
from mockube.apimachinery.clock import SteppedClock
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.kinds import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.choice import diagnosis, find_feasible
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.controller_manager.scheduler.devices.allocation import (
    MAX_STEPS,
    DeviceAllocator,
    RequestAlternative,
)
from mockube.controller_manager.scheduler.devices.claims import (
    DeviceSnapshot,
    allocate,
    device_ids,
    waits_for_claims,
)
from mockube.controller_manager.scheduler.devices.pools import DeviceId, gather_pools
from mockube.controller_manager.scheduler.devices.state import MAX_SYNC_SECONDS, DeviceState
from mockube.controller_manager.scheduler.failure import failure_of
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.volumes import Storage
from mockube.controller_manager.supervision import start
from tests.support.controllers.fake_caches import FakeCaches

RECORDED = [
    orjson.loads(line) for line in Path(__file__).with_name("allocations.jsonl").read_text().splitlines()
]
OF_GPU = 'device.driver == "gpu.example.com"'
CONFIG = {"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}
CLASSES = [
    {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": OF_GPU}}]}},
    {"metadata": {"name": "any"}, "spec": {}},
    {"metadata": {"name": "cfg"}, "spec": {"config": [CONFIG]}},
]
MISSING_KEY_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
NOW = "2030-01-01T00:00:00Z"
EMPTY = FakeCaches({}).of(RESOURCE_CLAIMS)


def nodes():
    cluster = SchedulerCache()
    for name, labels in (("na", {}), ("nb", {"zone": "z"})):
        status = {"allocatable": {"pods": "9"}}
        cluster.set_node({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})
    return cluster.nodes()


def claim(spec, name="c", **more):
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec, **more}


def pod(*names, **spec):
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    metadata = {"name": "p", "namespace": "default", "uid": "p"}
    return PodInfo.of(
        PodView.of({"metadata": metadata, "spec": {"containers": [], "resourceClaims": claims, **spec}})
    )


def snapshot(slices, *claims, in_use=(), in_flight=None, minor="1.37"):
    caches = FakeCaches({RESOURCE_CLAIMS: claims, DEVICE_CLASSES: CLASSES})
    return DeviceSnapshot(
        claims=caches.of(RESOURCE_CLAIMS),
        classes=caches.of(DEVICE_CLASSES),
        slices=lambda node: [one for one in slices if one["spec"].get("nodeName", node) == node],
        in_use=set(in_use),
        in_flight=in_flight or {},
        gates=FeatureGates(minor),
    )


def cluster_snapshot(devices):
    storage = Storage(claims=EMPTY, volumes=EMPTY, classes=EMPTY)
    return ClusterSnapshot(nodes=nodes(), labels_of_namespace=lambda _: {}, storage=storage, devices=devices)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_device_allocation_matches_recording(case):
    devices = snapshot(case["slices"], claim(case["claim"]), minor="1.36")
    where = {"nodeSelector": {"zone": "z"}} if case["name"] == "for all nodes" else {}
    wanted, seen = pod("c", **where), cluster_snapshot(devices)
    feasible = find_feasible(wanted, seen)
    if case["allocation"] is None:
        assert ([*feasible.feasible], diagnosis(feasible, 2)) == ([], case["message"])
        return
    (node,) = feasible.feasible
    (allocated,) = allocate(wanted, node, devices, NOW).allocations.values()
    assert allocated.pop("allocationTimestamp") == NOW
    assert allocated == case["allocation"]


def request(name="r", **exactly):
    return {"name": name, "exactly": {"deviceClassName": "any", **exactly}}


def slices(count, **place):
    devices = [{"name": f"g{number}"} for number in range(count)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "devices": devices, **(place or {"allNodes": True})}
    return [{"metadata": {"name": "s"}, "spec": spec}]


def spec(*requests, **more):
    return {"devices": {"requests": list(requests), **more}}


def reasons(*args, **options):
    feasible = find_feasible(pod("c"), cluster_snapshot(snapshot(*args, **options)))
    return sorted({reason for one in feasible.rejections.values() for reason in one.reasons})


@pytest.mark.parametrize(
    ("minor", "about", "hint", "size"),
    [
        (
            "1.37",
            "selector #0 on device d/p/g0",
            MISSING_KEY_HINT,
            ", request s: adding 13 devices exceeds the claim limit of 32, with 20 already accounted for",
        ),
        ("1.36", "selector #0", "", ": number of requested devices 33 exceeds the claim limit of 32"),
    ],
)
def test_errors_of_claims_have_the_words_of_the_minor(minor, about, hint, size):
    plugin = 'running "DynamicResources" filter plugin: claim default/c'
    expression = {"cel": {"expression": 'device.attributes["d"].nothing'}}
    odd = claim(spec(request(selectors=[expression])))
    assert reasons(slices(1), odd, minor=minor) == [
        f"{plugin}: {about}: CEL runtime error: no such key: nothing{hint}"
    ]
    many = claim(spec(request(count=20), request("s", count=13)))
    assert reasons(slices(1), many, minor=minor) == [f"{plugin}{size}"]


def test_allocated_devices_are_not_allocated_again():
    taken = DeviceId("d", "p", "g0")
    assert reasons(slices(1), claim(spec(request())), in_use=[taken]) == ["cannot allocate all claims"]
    assert reasons(slices(1), claim(spec(request(adminAccess=True))), in_use=[taken]) == []


def test_claims_of_pod_share_no_device():
    devices = snapshot(slices(2), claim(spec(request())), claim(spec(request()), "other"))
    allocated = allocate(pod("c", "other"), nodes()[0], devices, NOW).allocations
    assert [one.device for found in allocated.values() for one in device_ids(found)] == ["g0", "g1"]


def test_allocated_claim_restricts_nodes():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nb"]}]}
    status = {"allocation": {"nodeSelector": {"nodeSelectorTerms": [term]}}}
    feasible = find_feasible(pod("c"), cluster_snapshot(snapshot([], claim(spec(request()), status=status))))
    assert [one.name for one in feasible.feasible] == ["nb"]
    assert feasible.rejections["na"].reasons == ("resourceclaim not available on the node",)


@pytest.mark.parametrize(
    ("consumers", "words"),
    [((), "deallocation of ResourceClaim completed, preemption:"), (("o",), "preemption:")],
)
def test_unused_claim_on_other_node_is_deallocated(consumers, words):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]}
    held = claim(spec(request()))
    allocated = {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in consumers]
    held = {**held, "status": {"allocation": allocated, "reservedFor": users}}
    tried, seen = pod("c"), cluster_snapshot(snapshot(slices(1), held))
    failure = failure_of(tried, seen, find_feasible(tried, seen), ())
    assert failure.message.startswith(
        f"0/2 nodes are available: 2 resourceclaim not available on the node. {words}"
    )
    assert failure.unused_claim == (None if consumers else held)


def test_claim_with_too_many_consumers_is_in_use():
    consumers = [{"resource": "pods", "name": "x", "uid": str(number)} for number in range(256)]
    status = {"reservedFor": consumers, "allocation": {}}
    assert reasons([], claim(spec(request()), status=status)) == ["resourceclaim in use"]


def test_claim_being_allocated_is_awaited():
    problem = "resource claim default/c is in the process of being allocated"
    assert reasons(slices(1), claim(spec(request())), in_flight={"uid-c": {}}) == [problem]


@pytest.mark.parametrize(
    ("field", "value"),
    [("consumesCounters", [{}]), ("allowMultipleAllocations", True), ("bindingConditions", ["x"])],
)
def test_devices_with_unsupported_fields_are_not_allocated(field, value):
    listed = slices(1)
    listed[0]["spec"]["devices"][0][field] = value
    assert reasons(listed, claim(spec(request()))) == ["cannot allocate all claims"]


def test_device_search_is_limited():
    alternatives = [
        [
            [RequestAlternative(base=f"r{n}", subrequest="", spec={"count": 1}, device_class=CLASSES[1])]
            for n in range(12)
        ]
    ]
    constraint = {"matchAttribute": "d/a"}
    listed = slices(24)
    for number, device in enumerate(listed[0]["spec"]["devices"]):
        device["attributes"] = {"a": {"int": number % 3}}
    search = DeviceAllocator(
        pools=gather_pools(listed, nodes()[0].node),
        claims=[claim(spec(constraints=[constraint]))],
        requests=alternatives,
        in_use=(),
    )
    assert not search.run()
    assert search._steps > MAX_STEPS


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 3), max_size=4),
    st.integers(0, 7),
    st.sets(st.integers(0, 6)),
    st.booleans(),
)
def test_each_device_is_allocated_once_if_sufficient(counts, present, taken, is_local):
    place = {"nodeName": "nb"} if is_local else {}
    requests = [request(f"r{number}", count=count) for number, count in enumerate(counts)]
    in_use = {DeviceId("d", "p", f"g{number}") for number in taken}
    devices = snapshot(slices(present, **place), claim(spec(*requests)), in_use=in_use)
    feasible = find_feasible(pod("c"), cluster_snapshot(devices))
    free = {f"g{number}" for number in range(present)} - {f"g{number}" for number in taken}
    expected = {"nb"} if is_local and counts else {"na", "nb"}
    assert {one.name for one in feasible.feasible} == (expected if sum(counts) <= len(free) else set())
    for node in feasible.feasible:
        (allocated,) = allocate(pod("c"), node, devices, NOW).allocations.values()
        given_ = [one.device for one in device_ids(allocated)]
        assert len(given_) == len({*given_}) == sum(counts)
        assert {*given_} <= free


# --- state of devices


class Informer:
    def __init__(self):
        self.handlers, self.objects = [], {}
        self.lister = self
        self.synced = asyncio.Event()

    async def wait_synced(self):
        await self.synced.wait()

    def add_handler(self, handler):
        self.handlers.append(handler)

    def add_index(self, _, function):
        self.index = function

    def by_index(self, _, value):
        return [one for one in self.objects.values() if value in self.index(one)]

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
    def __init__(self):
        self.all = {}

    @property
    def caches(self):
        return FakeCaches({})

    def of(self, resource):
        return self.all.setdefault(resource, Informer())


@pytest.fixture
def informers():
    return Informers()


@pytest.fixture
def state(informers):
    return DeviceState(informers, lambda *_: None)


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

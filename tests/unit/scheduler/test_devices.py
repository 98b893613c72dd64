"""Device allocation matches the allocations and messages of kube-scheduler in `allocations.jsonl`."""

from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS
from mockube.scheduler.choice import best_nodes, diagnosis, find_feasible
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.devices.allocation import MAX_STEPS, DeviceAllocator, RequestAlternative
from mockube.scheduler.devices.claims import DeviceSnapshot, allocate, device_ids
from mockube.scheduler.devices.pools import DeviceId, gather_pools
from mockube.scheduler.volumes import Storage
from tests.support.controllers.devices import claim, pod, request, slices, spec
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.scheduler_objects import failure_on

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
IN_ZONE, ELSEWHERE = (
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
    for zone in "zy"
)
COUNTERS = {"name": "a", "counters": {"slots": {"value": "1"}}}
EMPTY = FakeCaches({}).of(RESOURCE_CLAIMS)


def nodes():
    cluster = SchedulerCache()
    for name, labels in (("na", {}), ("nb", {"zone": "z"})):
        status = {"allocatable": {"pods": "9"}}
        cluster.set_node({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})
    return cluster.nodes()


def snapshot(slices, *claims, in_use=(), in_flight=None, minor="1.37", gates=()):
    caches = FakeCaches({RESOURCE_CLAIMS: claims, DEVICE_CLASSES: CLASSES})
    return DeviceSnapshot(
        claims=caches.of(RESOURCE_CLAIMS),
        classes=caches.of(DEVICE_CLASSES),
        slices=lambda node: [one for one in slices if one["spec"].get("nodeName", node) == node],
        slices_of_pool=lambda _, pool: [one for one in slices if one["spec"]["pool"]["name"] == pool],
        in_use=set(in_use),
        in_flight=in_flight or {},
        gates=FeatureGates(minor, gates),
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


def test_decision_searches_each_node_once():
    searched = []
    first = {"name": "r", "firstAvailable": [{"name": "s", **request()["exactly"]}]}
    devices = snapshot(slices(1), claim(spec(first)))

    def slices_of(node):
        searched.append(node)
        return slices(1)

    seen = cluster_snapshot(structs.replace(devices, slices=slices_of))
    wanted = pod("c")
    node, *_ = best_nodes(wanted, seen, find_feasible(wanted, seen).feasible)
    allocate(wanted, node, seen.devices, NOW)
    assert sorted(searched) == ["na", "nb"]


def test_allocated_claim_restricts_nodes():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nb"]}]}
    status = {"allocation": {"nodeSelector": {"nodeSelectorTerms": [term]}}}
    feasible = find_feasible(pod("c"), cluster_snapshot(snapshot([], claim(spec(request()), status=status))))
    assert [one.name for one in feasible.feasible] == ["nb"]
    assert feasible.rejections["na"].reasons == ("resourceclaim not available on the node",)


def test_slices_are_not_read_if_all_claims_are_allocated():
    read = []
    allocated = claim(spec(request()), status={"allocation": {}})
    devices = structs.replace(snapshot([], allocated), slices=lambda node: read.append(node) or [])
    assert len(find_feasible(pod("c"), cluster_snapshot(devices)).feasible) == 2
    assert read == []


def test_classes_are_resolved_once_for_all_nodes():
    resolved = []
    devices = snapshot(slices(1), claim(spec(request())))
    classes = SimpleNamespace(get=lambda *key: resolved.append(key) or devices.classes.get(*key))
    found = find_feasible(pod("c"), cluster_snapshot(structs.replace(devices, classes=classes)))
    assert (len(found.feasible), resolved) == (2, [("", "any")])


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
    failure = failure_on(tried, seen, find_feasible(tried, seen), ())
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
    [("allowMultipleAllocations", True), ("bindingConditions", ["x"])],
)
def test_devices_with_unsupported_fields_are_not_allocated(field, value):
    listed = slices(1)
    listed[0]["spec"]["devices"][0][field] = value
    assert reasons(listed, claim(spec(request()))) == ["cannot allocate all claims"]


def counted(pool, name, *, slots, of="a", **place):
    """Return a slice with the total of a counter, and one with devices that consume each one slot of it."""
    devices = [
        {
            "name": f"{name}{n}",
            "consumesCounters": [{"counterSet": of, "counters": {"slots": {"value": "1"}}}],
        }
        for n in range(3)
    ]
    counters = {"sharedCounters": [{"name": "a", "counters": {"slots": {"value": str(slots)}}}]}
    specs = [{"driver": "d", "pool": pool, **rest, **place} for rest in (counters, {"devices": devices})]
    return [{"metadata": {"name": f"{name}{n}"}, "spec": each} for n, each in enumerate(specs)]


def pool_of(count):
    return {"name": "p", "generation": 1, "resourceSliceCount": count}


@pytest.mark.parametrize(
    ("slots", "asked", "in_use", "is_enough"),
    [(2, 2, (), True), (1, 2, (), False), (2, 2, ("x0",), False), (3, 2, ("x0",), True)],
)
def test_devices_share_counters_of_pool(slots, asked, in_use, is_enough):
    listed = counted(pool_of(2), "x", slots=slots, allNodes=True)
    taken = [DeviceId("d", "p", name) for name in in_use]
    expected = [] if is_enough else ["cannot allocate all claims"]
    assert reasons(listed, claim(spec(request(count=asked))), in_use=taken) == expected


def test_consumed_counters_are_free_again_after_another_choice():
    listed = counted(pool_of(2), "x", slots=2, allNodes=True)
    constraint = {"distinctAttribute": "d/a"}
    for number, device in enumerate(listed[1]["spec"]["devices"]):
        device["attributes"] = {"a": {"int": number // 2}}
    assert reasons(listed, claim(spec(request(count=2), constraints=[constraint]))) == []


def test_devices_of_other_nodes_consume_counters():
    """Slices for other nodes count for the number of slices, and their devices for the counters of a pool."""
    shared, own = counted(pool_of(3), "x", slots=2, nodeName="na")
    other = counted(pool_of(3), "y", slots=2, nodeName="nb")[1]
    wanted = claim(spec(request(count=2)))
    assert rejected_nodes([shared, own, other], wanted) == []
    assert rejected_nodes([shared, own, other], wanted, in_use=[DeviceId("d", "p", "y0")]) == ["na", "nb"]
    assert rejected_nodes([shared, own], wanted) == ["na", "nb"]


def rejected_nodes(*args, **options):
    feasible = find_feasible(pod("c"), cluster_snapshot(snapshot(*args, **options)))
    return sorted(feasible.rejections)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["unknown set", "set of other name"])
def test_pool_with_unknown_counters_is_invalid(names):
    listed = counted(pool_of(2), "x", slots=2, of=names[1], allNodes=True)
    listed[0]["spec"]["sharedCounters"][0]["name"] = names[0]
    assert reasons(listed, claim(spec(request()))) == ["invalid resource pools were encountered"]


def test_devices_with_counters_are_ignored_before_1_36():
    listed = counted(pool_of(2), "x", slots=2, allNodes=True)
    assert reasons(listed, claim(spec(request())), minor="1.35") == ["cannot allocate all claims"]


@pytest.mark.parametrize(("minor", "value"), [("1.36", False), ("1.35", True)])
def test_gate_of_counters_has_effect_since_1_36(minor, value):
    listed, gates = counted(pool_of(2), "x", slots=2, allNodes=True), [("DRAPartitionableDevices", value)]
    found = reasons(listed, claim(spec(request())), minor=minor, gates=gates)
    assert found == ["cannot allocate all claims"]


def test_pool_is_ignored_if_other_nodes_have_newer_slices():
    (old,) = slices(1, nodeName="na")
    (new,) = slices(1, nodeName="nb")
    old["spec"]["pool"] = {**old["spec"]["pool"], "resourceSliceCount": 2}
    new["spec"]["pool"] = {**new["spec"]["pool"], "generation": 2}
    new["metadata"] = {"name": "newer"}
    assert rejected_nodes([old, new], claim(spec(request()))) == ["na"]


@pytest.mark.parametrize(
    ("place", "is_usable"),
    [
        ({"nodeName": "nb"}, True),
        ({"nodeName": "na"}, False),
        ({"allNodes": True}, True),
        ({"nodeSelector": IN_ZONE}, True),
        ({"nodeSelector": ELSEWHERE}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("is_of_device", [False, True])
def test_devices_are_those_of_the_node(place, is_usable, is_of_device):
    """The place is that of a slice, or of each device."""
    (one,) = slices(2, **({"perDeviceNodeSelection": True} if is_of_device else place or {"nodeName": ""}))
    if is_of_device:
        one["spec"]["devices"][1] |= place
    found = gather_pools([one], nodes()[1].node)
    names = [device.id.device for pool in found for device in pool.devices]
    assert names == (["g1"] if is_of_device else ["g0", "g1"]) * is_usable


@pytest.mark.parametrize(
    ("fields", "is_ignored"),
    [
        ({}, False),
        ({"perDeviceNodeSelection": True}, True),
        ({"perDeviceNodeSelection": False}, True),
        ({"sharedCounters": [{"name": "a", "counters": {}}]}, True),
        ({"sharedCounters": []}, False),
    ],
)
def test_slices_with_parts_are_ignored_without_counters(fields, is_ignored):
    (one,) = slices(1)
    one["spec"] |= fields
    one["spec"]["devices"][0]["allNodes"] = True
    assert len(gather_pools([one], nodes()[0].node)) == 1
    assert len(gather_pools([one], nodes()[0].node, has_counters=False)) == (not is_ignored)


@pytest.mark.parametrize(
    ("edit", "state"),
    [
        pytest.param(list, (True, True), id="of several slices"),
        pytest.param(lambda specs: specs.pop(), (False, True), id="with a slice less"),
        pytest.param(
            lambda specs: specs[1]["devices"][0].update(name="g0"), (True, False), id="with a name twice"
        ),
        pytest.param(
            lambda specs: [spec.update(sharedCounters=[COUNTERS]) for spec in specs],
            (True, False),
            id="with a set of counters twice",
        ),
    ],
)
def test_pool_is_usable_if_it_is_complete_and_its_names_are_unique(edit, state):
    specs = [slices(1)[0]["spec"] for _ in range(2)]
    for number, each in enumerate(specs):
        each["pool"] = {"name": "p", "generation": 1, "resourceSliceCount": 2}
        each["devices"][0]["name"] = f"g{number}"
    edit(specs)
    listed = [{"metadata": {"name": str(number)}, "spec": each} for number, each in enumerate(specs)]
    (pool,) = gather_pools(listed, nodes()[0].node)
    assert (pool.is_complete, pool.is_valid, pool.is_usable) == (*state, all(state))


def test_older_generation_of_a_pool_is_ignored():
    old, new = slices(2)[0], slices(1)[0]
    new["spec"]["pool"] = {**new["spec"]["pool"], "generation": 2}
    new["metadata"] = {"name": "a"}
    (pool,) = gather_pools([old, new], nodes()[0].node)
    assert [device.id.device for device in pool.devices] == ["g0"]


def of_class(name, **more):
    return {"name": name, "exactly": {"deviceClassName": name, **more}}


def allocation(claim_spec, listed=None, **options):
    devices = snapshot(slices(4) if listed is None else listed, claim(claim_spec), **options)
    (found,) = allocate(pod("c"), nodes()[0], devices, NOW).allocations.values()
    return found["devices"]


def test_configuration_of_classes_is_that_of_their_requests():
    mine = {"requests": ["any"], "opaque": {"driver": "d"}}
    others = {"requests": ["x"], "opaque": {"driver": "e"}}
    found = allocation(spec(of_class("cfg"), of_class("any"), config=[mine, others, CONFIG]))
    assert found["config"] == [
        {"source": "FromClass", "requests": ["cfg"], **CONFIG},
        {"source": "FromClaim", **mine},
        {"source": "FromClaim", **CONFIG},
    ]
    assert "config" not in allocation(spec(of_class("any")))


def test_result_says_how_a_device_is_used():
    toleration = {"operator": "Exists"}
    (plain,) = allocation(spec(request()))["results"]
    assert plain == {"request": "r", "driver": "d", "pool": "p", "device": "g0"}
    (used,) = allocation(spec(request(adminAccess=True, tolerations=[toleration])))["results"]
    assert used == {**plain, "adminAccess": True, "tolerations": [toleration]}


def tainted(*effects):
    (one,) = slices(len(effects))
    for device, effect in zip(one["spec"]["devices"], effects, strict=True):
        device["taints"] = [{"key": "k", "value": "v", "effect": effect}] if effect else []
    return [one]


@pytest.mark.parametrize(
    ("tolerations", "device"),
    [
        ([], "g2"),
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "g1"),
        ([{"key": "k", "operator": "Exists"}], "g0"),
        ([{"key": "k", "value": "v"}], "g0"),
        ([{"key": "k", "value": "w"}], "g2"),
        ([{"key": "l", "operator": "Exists"}], "g2"),
        ([{"key": "l", "operator": "Exists"}, {"operator": "Exists"}], "g0"),
    ],
)
def test_taints_keep_devices_from_requests_that_do_not_tolerate_them(tolerations, device):
    listed = tainted("NoExecute", "NoSchedule", "PreferNoSchedule")
    (found,) = allocation(spec(request(tolerations=tolerations)), listed)["results"]
    assert found["device"] == device


def with_attributes(*values):
    (one,) = slices(len(values))
    for device, value in zip(one["spec"]["devices"], values, strict=True):
        device["attributes"] = value
    return [one]


@pytest.mark.parametrize(
    ("constraint", "devices"),
    [
        ({"matchAttribute": "d/a"}, ["g0", "g2"]),
        ({"matchAttribute": "other/a"}, None),
        ({"matchAttribute": "e/b"}, ["g1", "g2"]),
        ({"distinctAttribute": "d/a"}, ["g0", "g1"]),
        ({"distinctAttribute": "e/b"}, None),
        ({"matchAttribute": "other/a", "requests": ["x"]}, ["g0", "g1"]),
        ({"matchAttribute": "d/a", "requests": ["r"]}, ["g0", "g2"]),
    ],
)
def test_constraint_of_devices(constraint, devices):
    """An attribute without a domain has that of the driver."""
    listed = with_attributes(
        {"a": {"int": 1}}, {"a": {"int": 2}, "e/b": {"int": 1}}, {"a": {"int": 1}, "e/b": {"int": 1}}
    )
    wanted = spec(request(count=2), constraints=[constraint])
    if devices is None:
        assert reasons(listed, claim(wanted)) == ["cannot allocate all claims"]
    else:
        assert [found["device"] for found in allocation(wanted, listed)["results"]] == devices


def test_constraint_of_a_request_holds_for_its_alternatives():
    first = {"name": "r", "firstAvailable": [{"name": "s", **request(count=2)["exactly"]}]}
    listed = with_attributes({"a": {"int": 1}}, {"a": {"int": 2}}, {"a": {"int": 1}})
    for name, devices in (("r", ["g0", "g2"]), ("r/s", ["g0", "g2"]), ("r/t", ["g0", "g1"])):
        wanted = spec(first, constraints=[{"matchAttribute": "d/a", "requests": [name]}])
        assert [found["device"] for found in allocation(wanted, listed)["results"]] == devices


def test_request_for_all_devices_takes_each_that_it_selects():
    every = request(allocationMode="All")
    assert [found["device"] for found in allocation(spec(every))["results"]] == ["g0", "g1", "g2", "g3"]
    assert reasons(slices(2), claim(spec(every)), in_use=[DeviceId("d", "p", "g1")]) == [
        "cannot allocate all claims"
    ]
    assert reasons([], claim(spec(every))) == ["cannot allocate all claims"]
    assert reasons(slices(2), claim(spec(every, request("s")))) == ["cannot allocate all claims"]
    assert reasons(slices(33), claim(spec(every)))[0].endswith(
        "exceeds the claim limit of 32, with 0 already accounted for"
    )


@pytest.mark.parametrize(
    ("edit", "state"),
    [
        (lambda spec: spec["pool"].update(resourceSliceCount=2), "being updated"),
        (lambda spec: spec["devices"][1].update(name="g0"), "invalid"),
    ],
)
def test_request_for_all_devices_needs_usable_pools(edit, state):
    (one,) = slices(2)
    edit(one["spec"])
    problem = f"asks for all devices, but resource pool d/p is currently {state}"
    (reason,) = reasons([one], claim(spec(request(allocationMode="All"))))
    assert reason.endswith(f"claim default/c, request r: {problem}")


def test_second_alternative_is_taken_if_the_first_one_is_not_available():
    first = [
        {"name": "many", **request(count=9)["exactly"]},
        {"name": "few", **request(count=2)["exactly"]},
    ]
    found = allocation(spec({"name": "r", "firstAvailable": first}))["results"]
    assert [(one["request"], one["device"]) for one in found] == [("r/few", "g0"), ("r/few", "g1")]


def test_device_with_admin_access_is_used_once_by_a_claim():
    seen = request(adminAccess=True, count=2)
    assert [found["device"] for found in allocation(spec(seen))["results"]] == ["g0", "g1"]
    assert reasons(slices(1), claim(spec(seen))) == ["cannot allocate all claims"]


def test_missing_class_rejects_all_nodes():
    problem = "request r: device class none does not exist"
    assert reasons(slices(1), claim(spec(request(deviceClassName="none")))) == [problem]
    first = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "none"}]}
    assert reasons(slices(1), claim(spec(first))) == ["request r/s: device class none does not exist"]


@pytest.mark.thorough
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


def test_alternative_with_more_devices_than_a_claim_may_have_is_not_taken():
    first = [
        {"name": "many", **request(count=33)["exactly"]},
        {"name": "few", **request(count=1)["exactly"]},
    ]
    (found,) = allocation(spec({"name": "r", "firstAvailable": first}), slices(40))["results"]
    assert found["request"] == "r/few"


def test_attribute_with_a_domain_counts_before_that_of_the_driver():
    listed = with_attributes({"a": {"int": 1}, "d/a": {"int": 2}}, {"a": {"int": 1}}, {"a": {"int": 2}})
    found = allocation(spec(request(count=2), constraints=[{"matchAttribute": "d/a"}]), listed)["results"]
    assert [one["device"] for one in found] == ["g0", "g2"]


def test_counters_of_a_device_without_a_partner_are_free_again():
    listed = counted(pool_of(2), "x", slots=2, allNodes=True)
    for device, value in zip(listed[1]["spec"]["devices"], (0, 1, 1), strict=True):
        device["attributes"] = {"a": {"int": value}}
    wanted = claim(spec(request(count=2), constraints=[{"matchAttribute": "d/a"}]))
    assert reasons(listed, wanted) == []

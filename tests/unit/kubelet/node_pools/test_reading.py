"""Every form of pools becomes the same pools, and what is wrong with one is said in one line."""

from pathlib import Path

import pytest

from mockube.kubelet.node_pools.pool import DEFAULT_CAPACITY, PoolError, plain_nodes
from mockube.kubelet.node_pools.reading import read_pools, read_value

GPUS = """
- name: gpu
  count: 2
  instanceType: p4d.24xlarge
  region: eu
  zones: [eu-a, eu-b]
  architecture: arm64
  osImage: Ubuntu 24.04
  roles: [worker]
  labels: {disk: ssd}
  annotations: {example.com/rack: "7"}
  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
  capacity: {cpu: 96, memory: 1Ti, gpu: 8, hugepages-2Mi: 2Gi}
  reserved: {cpu: 500m}
  allocatable: {pods: 100}
  images: [{names: ["nginx:1.27"], sizeBytes: 72000000}]
  unschedulable: true
"""


def pool_of(value):
    (pool,) = read_value(value).pools
    return pool


@pytest.mark.parametrize("name", ["amd64", "arm64", "arm", "386", "ppc64le", "riscv64", "s390x"])
def test_architecture_is_one_of_kubernetes(name):
    assert pool_of(f"arch={name}:1").architecture == name


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"])
def test_effect_of_a_taint_is_one_of_kubernetes(effect):
    assert [each["effect"] for each in pool_of(f"taint=team=ml:{effect}:1").taints] == [effect]


@pytest.mark.parametrize("number", [0, 1, 15_000])
def test_plain_number_is_a_pool_without_settings(number):
    assert read_value(str(number)) == read_value(number) == plain_nodes(number)
    assert read_value(number).count == number


def test_text_has_several_pools():
    pools = read_value("cpu=32,memory=256Gi:800, gpu=8,instance=a100:40").pools
    assert [(pool.name, pool.count) for pool in pools] == [("node", 800), ("a100", 40)]
    assert pools[0].capacity == {**DEFAULT_CAPACITY, "cpu": "32", "memory": "256Gi"}
    assert pools[1].capacity["nvidia.com/gpu"] == "8"
    assert pools[1].labels["nvidia.com/gpu.present"] == "true"
    assert pools[1].labels["node.kubernetes.io/instance-type"] == "a100"


def test_text_has_labels_taints_roles_and_zones():
    pool = pool_of(
        "zone=a,zone=b,region=eu,role=worker,label=disk=ssd,label=empty=,taint=team=ml:NoExecute:5"
    )
    assert pool.zones == ("a", "b")
    assert [pool.zone_of(number) for number in (1, 2, 3)] == ["a", "b", "a"]
    assert pool.labels == {
        "mockube.dev/node-pool": "node",
        "topology.kubernetes.io/region": "eu",
        "node-role.kubernetes.io/worker": "",
        "disk": "ssd",
        "empty": "",
    }
    assert pool.taints == ({"key": "team", "value": "ml", "effect": "NoExecute"},)


def test_file_has_all_fields(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(GPUS)
    pools = read_value(path)
    assert (pools.text, pools.content) == (str(path), GPUS)
    pool = pool_of(str(path))
    assert (pool.name, pool.count, pool.architecture, pool.os_image) == ("gpu", 2, "arm64", "Ubuntu 24.04")
    assert pool.labels["node.kubernetes.io/instance-type"] == "p4d.24xlarge"
    assert pool.capacity["cpu"] == "96"
    assert pool.allocatable["cpu"] == "95500m"
    assert pool.allocatable["pods"] == "100"
    assert pool.allocatable["memory"] == "1022Gi", "huge pages are not available as memory"
    assert pool.images == ({"names": ["nginx:1.27"], "sizeBytes": 72_000_000},)
    assert pool.unschedulable
    assert read_pools(GPUS).pools == pools.pools


def test_list_of_a_program_is_read_again_by_other_processes():
    pools = read_value([{"count": 2, "capacity": {"cpu": 4, "memory": "8Gi"}, "labels": {"a": "b"}}])
    assert read_value(pools.text).pools == pools.pools
    assert pools.pools == read_value("cpu=4,memory=8Gi,label=a=b:2").pools


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cpu=4:1, cpu=8:1", ["node", "pool-2"]),
        ("3, gpu=8:1", ["node", "pool-2"]),
        ("instance=Standard_D4s_v3:1", ["standard-d4s-v3"]),
        ("instance=a:1, instance=a,gpu=1:1", ["a", "pool-2"]),
        ("name=big,instance=a:1, instance=a:1", ["big", "a"]),
    ],
)
def test_pool_without_name_gets_one(text, names):
    assert [pool.name for pool in read_pools(text).pools] == names


def test_name_is_a_setting():
    pool = pool_of("name=gpu:3")
    assert (pool.name, pool.has_settings) == ("gpu", True)
    assert pool.labels == {"mockube.dev/node-pool": "gpu"}


def test_taint_without_value_has_none():
    assert pool_of("taint=team:NoSchedule:1").taints == ({"key": "team", "effect": "NoSchedule"},)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a" * 57),
        ("annotations", {"a": "b" * ((1 << 18) - 1)}),
        ("images", [{"names": ["nginx"], "sizeBytes": 0}]),
        ("capacity", {"pods": 0}),
        ("reserved", {"cpu": 32, "memory": "256Gi"}),
        ("allocatable", {"cpu": 32}),
    ],
)
def test_values_at_their_limits_are_valid(field, value):
    assert pool_of([{"count": 1, field: value}]).count == 1


def test_pool_of_no_nodes_is_none():
    assert read_pools("gpu=8:0").pools == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", '"" is neither a number of nodes nor pools such as cpu=4,memory=16Gi:3', id="empty"),
        pytest.param("cpu=4", '"cpu=4" does not end with a number of nodes', id="no number"),
        pytest.param("cpu:3", '"cpu" is not KEY=VALUE, as cpu=4 is', id="no value"),
        pytest.param("cpu=:3", '"cpu" has no value', id="empty value"),
        pytest.param("cpu=4,cpu=5:3", '"cpu" is set twice in one pool', id="twice"),
        pytest.param("label=a=1,label=a=2:3", 'label: "a" is set twice in one pool', id="label twice"),
        pytest.param("memroy=4Gi:3", 'unknown key "memroy": did you mean "memory"?', id="mistyped key"),
        pytest.param("reserved=1:3", '"reserved" can be set only in a file of pools', id="key of files"),
        pytest.param("taint=a:3", 'taint: "a" is not KEY=VALUE:EFFECT', id="taint without effect"),
        pytest.param(
            "taint=a:NoSchedul:3",
            'taints: unknown effect "NoSchedul": did you mean "NoSchedule"?',
            id="unknown effect",
        ),
        pytest.param(
            "taint=a:Never:1", 'taints: unknown effect "Never": one of NoSchedule, Prefer', id="no effect"
        ),
        pytest.param("taint=a b:NoSchedule:1", 'taints: "a b": name part', id="key of a taint"),
        pytest.param("taint=a=b c:NoSchedule:1", 'taints: "b c": a valid label', id="value of a taint"),
        pytest.param("label=a=b c:1", 'labels: "b c": a valid label', id="value of a label"),
        pytest.param("role=a/b:1", 'roles: "a/b": a valid label', id="role"),
        pytest.param("role=:1", "roles: a value is empty", id="empty role"),
        pytest.param("cpu=4:9000,name=b:9000", "at most 15000 nodes can have addresses", id="too many"),
        pytest.param("9" * 5000, "at most 15000 nodes can have addresses", id="long number"),
        pytest.param("cpu=4:3 gpu=8:2", "commas separate settings and pools", id="no comma"),
        pytest.param("gpu=1.5:1", 'nvidia.com/gpu: "1.5": must be an integer', id="part of a device"),
        pytest.param("pods=1.5:1", 'pods: "1.5": must be an integer', id="part of a pod"),
        pytest.param("cpu=-4:1", 'cpu: "-4" is negative', id="negative amount"),
        pytest.param(
            "topology.kubernetes.io/zone=a:1", "a label is set by label=KEY=VALUE", id="label as resource"
        ),
        pytest.param("hugepages-2Mi=1Mi:1", "is not a multiple of the page size", id="part of a page"),
        pytest.param("hugepages-x=1Mi:1", "does not end with a page size", id="no page size"),
        pytest.param("hugepages-0=0:1", "does not end with a page size", id="empty page"),
        pytest.param("hugepages-1500m=0:1", "does not end with a page size", id="part of a byte"),
        pytest.param("zone=a b:1", 'zones: "a b": a valid label must be', id="zone"),
        pytest.param("label=a/b/c=d:1", 'labels: "a/b/c": a valid label key', id="label"),
        pytest.param("label=kubernetes.io/arch=arm64:1", "is set by architecture", id="label of a field"),
        pytest.param(
            "arch=amr64:1", 'architecture: unknown "amr64": did you mean "arm64"?', id="architecture"
        ),
        pytest.param("name=A:1", 'pool "A": name: "A": a lowercase RFC 1123 subdomain', id="name"),
        pytest.param(f"name={'a' * 58}:1", "name: must be no more than 57 characters", id="long name"),
        pytest.param("name=a:1,name=a:1", 'two pools have the name "a"', id="same name"),
        pytest.param("none.yaml", "none.yaml: No such file or directory", id="no file"),
        pytest.param("a\0b/c", "null byte", id="no path"),
        pytest.param("[", "error converting YAML to JSON", id="no YAML"),
        pytest.param("{count: 3}", "pools must be a list", id="no list"),
        pytest.param("[3]", "pools[0] must be an object with the fields of a pool", id="no object"),
        pytest.param("[]\n---\n[]", "in one YAML document", id="two documents"),
        pytest.param("[{count: 1, count: 2}]", 'key "count" already set in map', id="duplicate key"),
        pytest.param("[{}]", "pools[0]: there is no count", id="no count"),
        pytest.param("[{count: -1}]", "count: -1 is negative", id="negative number"),
        pytest.param("[{count: many}]", "pools[0].count: expected int, got str", id="type"),
        pytest.param(
            "[{count: 1, taintz: []}]", 'unknown field "taintz": did you mean "taints"?', id="field"
        ),
        pytest.param("[{count: 1, labels: {a: true}}]", 'the value of "a" must be a string', id="boolean"),
        pytest.param("[{count: 1, images: [nginx]}]", "images[0]: expected object, got str", id="image"),
        pytest.param("[{count: 1, images: [{names: [], sizeBytes: 1}]}]", "must have a name", id="no image"),
        pytest.param(
            '[{count: 1, images: [{names: [""], sizeBytes: 1}]}]', "must have a name", id="empty name"
        ),
        pytest.param(
            "[{count: 1, images: [{names: [a], sizeBytes: -1}]}]", "sizeBytes: -1 is negative", id="size"
        ),
        pytest.param(
            "[{count: 1, taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}]",
            "taints: a:NoSchedule is set twice",
            id="same taint",
        ),
        pytest.param(
            "[{count: 1, reserved: {cpu: 33}}]",
            "reserved: cpu: 33 is more than the capacity, 32",
            id="reserved",
        ),
        pytest.param(
            "[{count: 1, allocatable: {gpu: 1}}]",
            "nvidia.com/gpu: 1 is more than the capacity, 0",
            id="allocatable",
        ),
        pytest.param(
            "[{count: 1, reserved: {cpu: 1}, allocatable: {cpu: 1}}]", "both in reserved and in", id="both"
        ),
        pytest.param(
            "[{count: 1, capacity: {cpus: 1}}]", 'resource "cpus": did you mean "cpu"?', id="resource"
        ),
        pytest.param(
            "[{count: 1, capacity: {gpu: 1, nvidia.com/gpu: 1}}]", "which is set, too", id="gpu twice"
        ),
        pytest.param(
            "[{count: 1, capacity: {memory: 1Gi, hugepages-1Gi: 2Gi}}]",
            "are more than memory",
            id="huge pages",
        ),
        pytest.param(
            '[{count: 1, annotations: {"a b": c}}]', 'annotations: "a b": name part', id="annotation"
        ),
    ],
)
def test_invalid_pools_are_refused_in_one_line(text, problem):
    with pytest.raises(PoolError) as refusal:
        read_value(text)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_annotations_that_are_too_large_are_refused():
    with pytest.raises(PoolError, match="annotations: they have more than 262144 bytes"):
        read_value([{"count": 1, "annotations": {"a": "b" * (1 << 18)}}])


def test_file_that_is_too_large_is_refused(tmp_path: Path):
    path = tmp_path / "pools.yaml"
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(PoolError, match="pools have more than 1048576 bytes"):
        read_value(path)


def test_error_of_file_names_it(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text("- count: x\n")
    with pytest.raises(PoolError, match=r"pools\.yaml: pools\[0\]\.count: expected int, got str"):
        read_value(path)

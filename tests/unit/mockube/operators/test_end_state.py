import pytest

from mockube.operators.end_state import (
    NamePattern,
    Varying,
    differences,
    end_state,
    identity_of,
    learn_varying,
)


def config_map(name, data=None, *, uid="", generate_name="", owners=(), **fields):
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-of-{name}", "resourceVersion": "7"}
    if generate_name:
        metadata["generateName"] = generate_name
    if owners:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
            for owner in owners
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}, **fields}


def compared(expected, actual, varying=None, counted=frozenset()):
    varying = varying or Varying()
    ends = [end_state(trees, varying, counted) for trees in (expected, actual)]
    return [str(each) for each in differences(*ends, varying)]


def test_uids_times_and_versions_do_not_count():
    first = config_map("a", uid="1f5c-first", data={"at": "2026-01-01T00:00:00Z"})
    second = config_map("a", uid="2b7a-second", data={"at": "2027-02-02T10:00:01.123456Z"})
    second["metadata"] |= {
        "generation": 4,
        "resourceVersion": "9",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    assert compared([first], [second]) == []


@pytest.mark.parametrize(
    ("actual", "lines"),
    [
        pytest.param([], ["ConfigMap a in default is missing"], id="missing"),
        pytest.param(
            [config_map("a", {"color": "red"}), config_map("b")],
            ["ConfigMap b in default is left over"],
            id="left over",
        ),
        pytest.param(
            [config_map("a", {"color": "blue"})],
            ['ConfigMap a in default differs: data.color: "red" -> "blue"'],
            id="another value",
        ),
    ],
)
def test_differences(actual, lines):
    assert compared([config_map("a", {"color": "red"})], actual) == lines


def test_generated_names_are_matched_by_owner_and_content():
    owner = config_map("site")
    children = [
        config_map(name, {"n": n}, generate_name="child-", owners=[owner])
        for name, n in (("child-x", "1"), ("child-y", "2"))
    ]
    others = [
        config_map(name, {"n": n}, generate_name="child-", owners=[owner])
        for name, n in (("child-q", "2"), ("child-r", "1"))
    ]
    assert compared([owner, *children], [owner, *others]) == []
    assert compared([owner, *children], [owner, *others, config_map("child-z", generate_name="child-")]) == [
        "ConfigMap child-* in default is left over"
    ]


def test_names_and_uids_in_other_objects_are_replaced():
    def objects(child, uid):
        return [
            config_map(child, generate_name="child-", uid=uid),
            config_map("site", {"child": child, "path": f"/data/{child}/log"}),
            config_map("part", owners=[config_map(child, uid=uid)]),
        ]

    assert compared(objects("child-x", "1f5c-first"), objects("child-y", "2b7a-second")) == []


def test_other_owner_is_a_difference():
    owners = [config_map("a"), config_map("b")]
    lines = compared(
        [*owners, config_map("c", owners=[owners[0]])], [*owners, config_map("c", owners=[owners[1]])]
    )
    assert len(lines) == 1
    assert "ownerReferences[b]" in lines[0]


def test_random_names_without_generate_name_are_learned():
    first, second, third = (
        [config_map("site", {"child": f"job-{text}"}), config_map(f"job-{text}")]
        for text in ("x1", "y2", "z3")
    )
    varying = learn_varying(first, second)
    assert varying.patterns == [NamePattern("ConfigMap", "job-", "")]
    assert varying.lines() == []
    assert compared(first, third, varying) == []
    assert compared(first, [*third, config_map("job-w4")], varying) == [
        "ConfigMap job-* in default is left over"
    ]


def test_fixed_name_that_a_pattern_matches_stays():
    first, second = ([config_map("job-main"), config_map(f"job-{text}")] for text in ("x1", "y2"))
    varying = learn_varying(first, second)
    assert compared(first, second, varying) == []
    assert compared(first, [second[1]], varying) == ["ConfigMap job-main in default is missing"]


def test_fields_and_numbers_that_vary_do_not_count():
    first = [config_map("a", {"port": "1", "color": "red"}), config_map("p-1", generate_name="p-")]
    second = [config_map("a", {"port": "2", "color": "red"})]
    varying = learn_varying(first, second)
    assert varying.lines() == [
        "ConfigMap a in default: data.port",
        "ConfigMap p-* in default: how many there are",
    ]
    assert compared(first, [config_map("a", {"port": "3", "color": "blue"})], varying) == [
        'ConfigMap a in default differs: data.color: "red" -> "blue"'
    ]


def test_objects_of_built_in_controllers_are_counted():
    first, second = config_map("a", {"x": "1"}), config_map("a", {"x": "2"})
    assert compared([first], [second], counted={identity_of(first)}) == []
    assert compared([first], [], counted={identity_of(first)}) == ["ConfigMap a in default is missing"]


def test_noise_and_old_versions_are_left_out():
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "default"},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"replicas": 0},
    }
    assert compared([], [lease, replica_set]) == []


def test_same_end_has_the_same_key():
    differs = [
        differences(end_state([config_map("a", {"x": "1"})]), end_state([config_map("a", {"x": x})]))
        for x in ("2", "3")
    ]
    assert differs[0][0].key == differs[1][0].key

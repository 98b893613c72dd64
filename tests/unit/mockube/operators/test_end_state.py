import re

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


def compared(expected, actual, varying=None, counted=()):
    varying = varying or Varying()
    ends = [end_state(trees, varying, dict(counted)) for trees in (expected, actual)]
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


def test_values_of_secrets_are_compared_and_not_printed():
    annotation = "kubectl.kubernetes.io/last-applied-configuration"

    def secret(value, **fields):
        annotations = {annotation: f'{{"data":{{"key":"{value}"}}}}', "color": value[:1]}
        tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": annotations}}
        return {**tree, "data": {"key": value}, **fields}

    assert compared([secret("c2VjcmV0")], [secret("c2VjcmV0")]) == []
    (line,) = compared([secret("c2VjcmV0")], [secret("ZHJpZnQ=")])
    assert 'metadata.annotations.color: "c" -> "Z"' in line
    assert 'data.key: "**********" -> "**********"' in line
    (more,) = compared([secret("c2VjcmV0")], [secret("c2VjcmV0", stringData={"new": "ZHJpZnQ="})])
    assert more == 'Secret a differs: stringData.new: "**********"'
    assert not [text for text in ("c2VjcmV0", "ZHJpZnQ=") if text in line + more]


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


def test_uid_and_time_in_the_name_of_a_member_do_not_count():
    def end(uid, others=()):
        rule = config_map("alarms", uid=uid)
        names = [f"default-alarms-{uid}.yaml", *(f"{time}-{uid}" for time in others)]
        return end_state([rule, config_map("files", dict.fromkeys(names, "x"))])

    first = "11111111-1111-4111-8111-111111111111"
    second = "22222222-2222-4222-8222-222222222222"
    assert differences(end(first), end(second)) == []
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]
    assert differences(end(first, times), end(second, times)) == []
    (found,) = differences(end(first, times), end(second, times[:1]))
    assert "data" in str(found)


def test_names_of_token_volumes_do_not_count():
    def pod(volume):
        container = {"name": "main", "volumeMounts": [{"name": volume, "mountPath": "/var/run/secrets"}]}
        spec = {"containers": [container], "volumes": [{"name": volume, "projected": {}}]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": spec,
        }

    assert compared([pod("kube-api-access-2sd2m")], [pod("kube-api-access-tzcp4")]) == []


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
    counted = {identity_of(first): frozenset()}
    assert compared([first], [second], counted=counted) == []
    assert compared([first], [], counted=counted) == ["ConfigMap a in default is missing"]


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
    address = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": "10.96.0.7"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "web"}},
    }
    assert compared([], [lease, replica_set, address]) == []


@pytest.mark.parametrize("label", ["pod-template-hash", "controller-revision-hash"])
@pytest.mark.parametrize("value", ["{}", "web-{}"])
def test_hash_of_a_template_does_not_count(label, value):
    """It is another one if only the order of the template's lists is."""

    def end(template_hash):
        name, labels = f"web-{template_hash}", {label: value.format(template_hash)}
        made = {"name": name, "namespace": "default", "labels": labels}
        pod = {**made, "name": f"{name}-xk2lp", "generateName": f"{name}-"}
        message = {"message": f'ReplicaSet "{name}" has successfully progressed.'}
        return [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": made, "spec": {"replicas": 1}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": pod},
            config_map("web", status={"conditions": [{"type": "Progressing", **message}]}),
        ]

    first, second = end("588f7dc687"), end("74b4b7945c")
    assert compared(first, second) == []
    assert compared(first, [*second, *end("67ffb55677")][:4]) == [
        "ReplicaSet.apps web-* in default is left over"
    ]


@pytest.mark.parametrize("value", ["", "a", "default", "web-default"])
def test_label_of_a_user_that_is_no_hash_replaces_nothing(value):
    first = config_map("web-a")
    first["metadata"]["labels"] = {"pod-template-hash": value}
    assert compared([first], []) == ["ConfigMap web-a in default is missing"]


def test_newest_condition_of_each_type_counts():
    def cluster(*conditions):
        named = [dict(zip(("type", "status"), each, strict=True)) for each in conditions]
        return config_map("a", status={"conditions": named})

    ready = cluster(("Ready", "True"))
    assert compared([ready], [cluster(("Ready", "False"), ("Ready", "True"))]) == []
    assert compared([ready], [cluster(("Ready", "True"), ("Ready", "False"))]) != []
    assert compared([ready], [cluster(("Error", "True"), ("Ready", "True"))]) != []


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        pytest.param({"message": "pods: conflict"}, [], id="text"),
        pytest.param({"reason": "Failed", "message": "pods: conflict"}, ["reason", "message"], id="reason"),
        pytest.param({"status": "Unknown"}, ["status"], id="status"),
    ],
)
def test_text_of_a_condition_counts_only_beside_its_status_or_reason(changed, lines):
    condition = {"type": "Error", "status": "True", "reason": "Conflict", "message": "services: conflict"}
    first, second = (
        config_map("a", status={"conditions": [each]}) for each in (condition, condition | changed)
    )
    (found,) = compared([first], [second]) or [""]
    assert re.findall(r"conditions\[Error\]\.(\w+)", found) == lines


def test_revision_of_a_deployment_does_not_count():
    def deployment(revision, **annotations):
        metadata = {"name": "web", "namespace": "default"}
        revisions = {"deployment.kubernetes.io/revision": revision}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**metadata, "annotations": {**revisions, **annotations}},
        }

    assert compared([deployment("1")], [deployment("3")]) == []
    assert compared([deployment("1", color="red")], [deployment("3", color="blue")]) != []


def test_same_end_has_the_same_key():
    differs = [
        differences(end_state([config_map("a", {"x": "1"})]), end_state([config_map("a", {"x": x})]))
        for x in ("2", "3")
    ]
    assert differs[0][0].key == differs[1][0].key


def site(observed, current, **spec):
    metadata = {"name": "blog", "namespace": "default", "generation": current}
    conditions = [{"type": "Ready", "observedGeneration": observed}]
    status = {"observedGeneration": observed, "conditions": conditions, "podIP": f"10.0.0.{current}"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def test_status_of_another_generation_is_a_difference():
    assert compared([site(2, 2)], [site(5, 5)]) == []
    (line,) = compared([site(2, 2)], [site(4, 5)])
    assert 'status.observedGeneration: "the current generation" -> "another generation"' in line


@pytest.mark.parametrize("name", ["nodeName", "generation", "clusterIP", "uid", "imageID"])
def test_names_count_where_kubernetes_has_no_such_field(name):
    assert len(compared([site(1, 1, **{name: "a"})], [site(1, 1, **{name: "b"})])) == 1
    assert len(compared([config_map("a", {name: "a"})], [config_map("a", {name: "b"})])) == 1
    labelled = [config_map("a"), config_map("a")]
    for each, value in zip(labelled, "ab", strict=True):
        each["metadata"]["labels"] = {name: value}
    assert len(compared(labelled[:1], labelled[1:])) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param("Pod", "nodeName", id="pod"), pytest.param("Service", "clusterIP", id="service")],
)
def test_places_of_built_in_kinds_do_not_count(kind, name):
    first, second = (
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": {name: value}} for value in "ab"
    )
    assert compared([first], [second]) == []


def test_version_of_a_reference_does_not_count_but_its_uid_does():
    def pointing(version, uid="u"):
        target = {"kind": "Site", "name": "blog", "uid": uid, "resourceVersion": version}
        return config_map("a", spec={"target": target})

    assert compared([pointing("1")], [pointing("2")]) == []
    assert len(compared([pointing("1")], [pointing("1", "v")])) == 1


def test_families_of_random_names_have_patterns_of_their_own():
    def run(job, web, other):
        names = (f"job-{job}", f"job-{other}", f"web-{web}-config", f"web-{web}-keys")
        return [config_map(name) for name in names]

    first, second, third = run("x1", "q1", "a1"), run("x2", "r2", "b2"), run("c3", "s3", "d3")
    varying = learn_varying(first, second)
    assert {each.label for each in varying.patterns} == {"job-*", "web-*-config", "web-*-keys"}
    assert compared(first, third, varying) == []
    assert compared(first, third[:-1], varying) == ["ConfigMap web-*-keys in default is missing"]


def named(kind, name, api_version="v1", namespace="", **fields):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def volume(uid):
    claim = named("PersistentVolumeClaim", "data", namespace="default")
    claim["metadata"]["uid"] = uid
    reference = {"kind": "PersistentVolumeClaim", "name": "data", "uid": uid}
    return [named("PersistentVolume", f"pvc-{uid}", spec={"claimRef": reference}), claim]


def job(minute):
    tree = named("Job", f"backup-{minute}", "batch/v1", "default")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "u", "controller": True}
    tree["metadata"]["ownerReferences"] = [owner]
    return [tree]


@pytest.mark.parametrize(
    ("made", "values"),
    [
        pytest.param(volume, ("1f5c", "2b7a"), id="volume"),
        pytest.param(job, ("29399000", "29399001"), id="job"),
    ],
)
def test_names_that_controllers_give_by_chance_or_time_do_not_count(made, values):
    first, second = map(made, values)
    assert compared(first, second) == []
    line = compared(first, first[1:])[0]
    assert "*" in line
    assert line.endswith("is missing")


def test_volume_of_a_user_is_known_by_its_name():
    assert (
        len(compared([named("PersistentVolume", "pvc-disk")], [named("PersistentVolume", "pvc-tape")])) == 2
    )


def test_contents_of_volumes_are_not_left_over():
    ours, others = (
        named("Secret", name, namespace="kube-system") for name in ("mockube-pod-1f5c-data", "mine")
    )
    assert compared([], [ours]) == []
    assert compared([], [others]) == ["Secret mine in kube-system is left over"]

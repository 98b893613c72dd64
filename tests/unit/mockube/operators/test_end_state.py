import re

import pytest

from mockube.operators.end_state import (
    Difference,
    NamePattern,
    Varying,
    differences,
    end_state,
    identity_of,
    is_noise,
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
        pytest.param({"status": "Unknown", "message": "x"}, ["message", "status"], id="status and text"),
        pytest.param({"count": 2, "message": "x"}, ["count"], id="another field"),
    ],
)
def test_text_of_a_condition_counts_only_beside_its_status_or_reason(changed, lines):
    condition = {"type": "Error", "status": "True", "reason": "Conflict", "message": "services: conflict"}
    first, second = (
        config_map("a", status={"conditions": [each]}) for each in (condition, condition | changed)
    )
    (found,) = compared([first], [second]) or [""]
    assert sorted(re.findall(r"conditions\[Error\]\.(\w+)", found)) == sorted(lines)


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


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Event", "v1"),
        ("Event", "events.k8s.io/v1"),
        ("Lease", "coordination.k8s.io/v1"),
        ("Node", "v1"),
        ("CSINode", "storage.k8s.io/v1"),
        ("IPAddress", "networking.k8s.io/v1"),
        ("VolumeAttachment", "storage.k8s.io/v1"),
        ("ControllerRevision", "apps/v1"),
    ],
)
def test_kind_that_changes_without_an_operator_is_left_out(kind, api_version):
    assert compared([named(kind, "a", api_version)], []) == []
    assert len(compared([named(kind, "a", "example.com/v1")], [])) == 1


def test_replica_set_with_pods_counts():
    sets = [named("ReplicaSet", "a", "apps/v1", spec={"replicas": count}) for count in (1, 0)]
    assert compared(sets[:1], sets[1:]) == ["ReplicaSet.apps a is missing"]


@pytest.mark.parametrize(
    "field", ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"]
)
def test_field_of_metadata_that_is_another_one_each_time_does_not_count(field):
    first, second = named("Site", "a", "example.com/v1"), named("Site", "a", "example.com/v1")
    for tree, value in ((first, "1f5c-first"), (second, "2b7a-second")):
        tree["metadata"] |= {field: value}
    assert compared([first], [second]) == []


@pytest.mark.parametrize(
    "name", ["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history", "uid"]
)
def test_annotation_that_counts_writes_does_not_count(name):
    first, second = config_map("a"), config_map("a")
    for tree, value in ((first, "1"), (second, "2")):
        tree["metadata"]["annotations"] = {name: value}
    assert compared([first], [second]) == []
    first["metadata"]["annotations"]["other"] = "x"
    assert len(compared([first], [second])) == 1


@pytest.mark.parametrize(
    "field",
    [
        "nodeName",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "clusterIP",
        "clusterIPs",
        "nodePort",
        "containerID",
        "imageID",
        "restartCount",
        "uid",
    ],
)
def test_place_in_a_status_does_not_count(field):
    first, second = (config_map("a", status={"deep": [{field: value}]}) for value in "xy")
    assert compared([first], [second]) == []
    other, another = (config_map("a", status={"deep": [{"other": value}]}) for value in "xy")
    assert len(compared([other], [another])) == 1


@pytest.mark.parametrize(
    ("kind", "api_version", "field"),
    [
        ("Pod", "v1", "nodeName"),
        ("Service", "v1", "clusterIP"),
        ("Service", "v1", "clusterIPs"),
        ("Service", "v1", "nodePort"),
        ("Service", "v1", "healthCheckNodePort"),
        ("Endpoints", "v1", "nodeName"),
        ("EndpointSlice", "discovery.k8s.io/v1", "nodeName"),
    ],
)
def test_place_in_the_spec_of_a_kind_does_not_count(kind, api_version, field):
    first, second = (named(kind, "a", api_version, spec={"all": [{field: value}]}) for value in "xy")
    assert compared([first], [second]) == []
    first["spec"]["other"] = 1
    assert len(compared([first], [second])) == 1


def test_status_that_is_no_map_counts():
    assert len(compared([config_map("a", status="x")], [config_map("a", status="y")])) == 1
    for conditions in ("x", ["x"], [{"type": 1}], [{}]):
        first = config_map("a", status={"conditions": conditions, "n": 1})
        second = config_map("a", status={"conditions": conditions, "n": 2})
        assert len(compared([first], [second])) == 1
        assert compared([first], [first]) == []


def test_generation_is_the_current_one_wherever_it_is_observed():
    def tree(generation, observed):
        found = config_map("a", status={"parts": [{"observedGeneration": observed}]})
        found["metadata"]["generation"] = generation
        return found

    assert compared([tree(1, 1)], [tree(3, 3)]) == []
    assert len(compared([tree(1, 1)], [tree(3, 2)])) == 1


@pytest.mark.parametrize(
    ("type_", "line"),
    [("missing", "Site a in default is missing"), ("left over", "Site a in default is left over")],
)
def test_difference_without_changes_is_a_line(type_, line):
    assert str(Difference(type=type_, role=("Site", "default", "a"))) == line


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "; and 1 more fields"), (6, "; and 3 more fields")])
def test_line_has_three_fields(count, more):
    first, second = (config_map("a", {f"k{number}": value for number in range(count)}) for value in "xy")
    (line,) = compared([first], [second])
    fields = "; ".join(f'data.k{number}: "x" -> "y"' for number in range(3))
    assert line == f"ConfigMap a in default differs: {fields}{more}"


def test_keys_tell_ends_apart():
    first = Difference(type="missing", role=("Site", "default", "a"))
    assert first.key != Difference(type="left over", role=("Site", "default", "a")).key
    assert first.key != Difference(type="missing", role=("Site", "default", "b")).key


@pytest.mark.parametrize(
    ("kind", "name", "matches"),
    [
        ("ConfigMap", "job-x-end", True),
        ("Secret", "job-x-end", False),
        ("ConfigMap", "job--end", False),
        ("ConfigMap", "jub-x-end", False),
        ("ConfigMap", "job-x-and", False),
    ],
)
def test_pattern_matches_names_with_something_between_its_ends(kind, name, matches):
    pattern = NamePattern("ConfigMap", "job-", "-end")
    assert pattern.matches(kind, name) is matches
    assert pattern.label == "job-*-end"


def test_list_has_the_fields_and_numbers_that_vary():
    varying = Varying(
        fields={(("Site", "default", "b"), "spec.x"), (("Site", "default", "a"), "spec.y")},
        counts={("Pod", "", "p-*")},
    )
    assert varying.lines() == [
        "Site a in default: spec.y",
        "Site b in default: spec.x",
        "Pod p-*: how many there are",
    ]


@pytest.mark.parametrize(
    ("identity", "is_left_out"),
    [
        (("Secret", "kube-system", "mockube-pod-1f5c-data"), True),
        (("Secret", "default", "mockube-pod-1f5c-data"), False),
        (("ConfigMap", "kube-system", "mockube-pod-1f5c-data"), False),
        (("Secret", "kube-system", "other"), False),
        (("Node", "", "a"), True),
    ],
)
def test_contents_of_volumes_are_noise(identity, is_left_out):
    assert is_noise(identity) is is_left_out


def test_job_of_another_owner_has_a_name_of_its_own():
    first, second = job("1"), job("2")
    for (tree,) in (first, second):
        tree["metadata"]["ownerReferences"][0] |= {"kind": "Site", "apiVersion": "example.com/v1"}
    assert len(compared(first, second)) == 2
    unowned = [named("Job", name, "batch/v1", "default") for name in ("a", "b")]
    assert len(compared(unowned[:1], unowned[1:])) == 2


def test_volume_mount_of_a_user_in_a_pod_counts():
    first, second = (named("Pod", "a", spec={"volumes": [{"name": name}]}) for name in ("data-1", "data-2"))
    assert len(compared([first], [second])) == 1
    others = [named("Site", "a", spec={"volumes": [{"name": f"kube-api-access-{name}"}]}) for name in "xy"]
    assert len(compared(others[:1], others[1:])) == 1


def test_longer_random_name_is_replaced_before_a_shorter_one_in_it():
    def end(one, two):
        return [
            config_map(one, generate_name="a-"),
            config_map(two, generate_name=f"{one}-"),
            config_map("site", {"child": two}),
        ]

    assert compared(end("a-x", "a-x-q"), end("a-y", "a-y-r")) == []


def test_equal_objects_are_matched_one_to_one():
    twins = [config_map(f"p-{number}", {"x": "1"}, generate_name="p-") for number in range(3)]
    assert compared(twins, twins[:2]) == ["ConfigMap p-* in default is missing"]
    other = config_map("p-9", {"x": "2"}, generate_name="p-")
    assert compared(twins, [*twins[:2], other]) == ['ConfigMap p-* in default differs: data.x: "1" -> "2"']


def test_counted_object_has_its_owners_and_some_fields():
    def tree(color, size, owner):
        return config_map("a", {"color": color, "size": size}, owners=[config_map(owner)])

    counted = {identity_of(tree("", "", "o")): frozenset({"data.size"})}
    assert compared([tree("red", "1", "o")], [tree("blue", "1", "o")], counted=counted) == []
    assert len(compared([tree("red", "1", "o")], [tree("red", "2", "o")], counted=counted)) == 1
    assert len(compared([tree("red", "1", "o")], [tree("red", "1", "p")], counted=counted)) == 1


def test_names_that_share_nothing_have_a_pattern_of_all_or_none():
    first = [config_map("abc1"), config_map("abc2")]
    second = [config_map("abd1"), config_map("abd2")]
    (pattern,) = learn_varying(first, second).patterns
    assert pattern.label == "ab*"
    assert learn_varying([config_map("x")], [config_map("y")]).patterns == []
    assert learn_varying([config_map("x")], [config_map("y")]).lines() == [
        "ConfigMap x in default: how many there are",
        "ConfigMap y in default: how many there are",
    ]


def test_object_of_one_run_alone_makes_no_pattern():
    assert learn_varying([config_map("job-x")], []).patterns == []


def test_members_with_one_label_are_a_sorted_list():
    def end(*uids):
        targets = [config_map(f"t{number}", uid=uid) for number, uid in enumerate(uids)]
        names = {f"2026-01-0{number + 1}T00:00:00Z": text for number, text in enumerate("ba")}
        return [*targets, config_map("files", names)]

    assert compared(end("1f5c-1", "1f5c-2"), end("2b7a-1", "2b7a-2")) == []


def test_text_outside_of_conditions_counts():
    assert (
        len(compared([config_map("a", status={"message": "x"})], [config_map("a", status={"message": "y"})]))
        == 1
    )


def test_name_that_a_user_gave_is_no_generated_one():
    assert (
        len(
            compared([config_map("one", generate_name="child-")], [config_map("two", generate_name="child-")])
        )
        == 2
    )


def test_values_of_members_with_one_label_count():
    def end(value):
        return [config_map("files", {"2026-01-01T00:00:00Z": "x", "2026-01-02T00:00:00Z": value})]

    assert len(compared(end("y"), end("z"))) == 1


def test_names_with_a_common_end_have_a_pattern():
    (pattern,) = learn_varying([config_map("x1-end")], [config_map("y2-end")]).patterns
    assert pattern.label == "*-end"


@pytest.mark.parametrize("name", ["kind", "name"])
def test_version_of_what_is_no_reference_counts(name):
    first, second = (
        config_map("a", spec={"target": {name: "x", "resourceVersion": version}}) for version in "12"
    )
    assert len(compared([first], [second])) == 1


def test_object_that_remains_is_not_compared_with_one_that_is_missing():
    children = [config_map(f"p-{number}", {"x": str(number)}, generate_name="p-") for number in (1, 2)]
    assert compared(children, children[1:]) == ["ConfigMap p-* in default is missing"]

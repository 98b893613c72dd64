"""Manifests of static pods, and the mirror pods of them."""

import re

import orjson
import pytest

from mockube.kubelet.static_pods import manifests
from mockube.kubelet.static_pods.manifests import MAX_BYTES, ManifestError, hash_of, mirror_pod, static_pod

PATH = "/etc/kubernetes/manifests/web.yaml"
WEB = b"{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {a: b}}, spec: {containers: [{name: c, image: nginx}]}}"


def test_pod_has_the_name_the_node_and_the_toleration_of_a_kubelet():
    pod = static_pod(WEB, PATH, "Node-1")
    assert (pod["metadata"]["name"], pod["metadata"]["namespace"]) == ("web-node-1", "default")
    assert pod["spec"]["nodeName"] == "Node-1"
    assert pod["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]


def test_hash_depends_on_the_content_the_file_and_the_node():
    hashes = {
        hash_of(static_pod(data, path, node))
        for data in (WEB, WEB.replace(b"nginx", b"redis"))
        for path in (PATH, f"{PATH}.yaml")
        for node in ("a", "b")
    }
    assert len(hashes) == 8
    assert hash_of(static_pod(WEB, PATH, "a")) == hash_of(static_pod(WEB + b"\n# a comment", PATH, "a"))


def test_mirror_pod_names_its_hash_and_its_owner():
    pod = static_pod(WEB, PATH, "n")
    mirror = mirror_pod(pod, {"metadata": {"name": "n", "uid": "u"}}, "2026-01-01T00:00:00Z")
    assert mirror["metadata"]["annotations"] == {
        "a": "b",
        "kubernetes.io/config.hash": hash_of(pod),
        "kubernetes.io/config.mirror": hash_of(pod),
        "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
        "kubernetes.io/config.source": "file",
    }
    assert mirror["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    ]


@pytest.mark.parametrize(
    ("spec", "resource"),
    [
        ("{serviceAccountName: a}", "serviceaccounts"),
        ("{volumes: [{name: v, secret: {secretName: s}}]}", "secrets"),
        ("{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}", "persistentvolumeclaims"),
        ("{containers: [{name: c, envFrom: [{configMapRef: {name: m}}]}]}", "configmaps"),
        (
            "{initContainers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}",
            "secrets",
        ),
    ],
)
def test_reference_to_an_object_of_the_api_is_refused(spec, resource):
    manifest = f"{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {spec}}}".encode()
    with pytest.raises(ManifestError, match=f"static pods may not reference {resource}"):
        static_pod(manifest, PATH, "n")


def test_large_manifest_is_refused_before_it_is_read():
    with pytest.raises(ManifestError, match="the file is too large"):
        static_pod(WEB + b" " * MAX_BYTES, PATH, "n")


REFERENCES = {
    "serviceaccounts": [{"serviceAccountName": "a"}, {"serviceAccount": "a"}],
    "configmaps": [
        {"volumes": [{"configMap": {"name": "m"}}]},
        {"containers": [{"envFrom": [{"configMapRef": {"name": "m"}}]}]},
        {"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "m"}}}]}]},
    ],
    "secrets": [
        {"volumes": [{}, {"secret": {"secretName": "s"}}]},
        {"initContainers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]},
        {"containers": [{}, {"env": [{"name": "A"}, {"valueFrom": {"secretKeyRef": {"name": "s"}}}]}]},
    ],
    "persistentvolumeclaims": [
        {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]},
        {"volumes": [{"ephemeral": {"volumeClaimTemplate": {}}}]},
    ],
    "resourceclaims": [{"resourceClaims": [{"name": "r"}]}],
    None: [
        {},
        {"volumes": [{"emptyDir": {}}, {"hostPath": {"path": "/"}}], "resourceClaims": []},
        {"containers": [{"env": [{"name": "A", "value": "b"}, 7], "envFrom": "x"}]},
        {"containers": [{"env": [{"valueFrom": 3}]}]},
    ],
}


@pytest.mark.parametrize(
    ("resource", "spec"), [(resource, spec) for resource, specs in REFERENCES.items() for spec in specs]
)
def test_objects_of_the_api_to_which_a_pod_refers(resource, spec):
    assert [*manifests._references(spec)] == ([resource] if resource else [])


@pytest.mark.parametrize(
    ("metadata", "spec", "has_shape"),
    [
        ({}, {}, True),
        ({"annotations": {}, "labels": {}, "namespace": "a"}, {"containers": [{}], "volumes": []}, True),
        ({"annotations": []}, {}, False),
        ({"labels": "x"}, {}, False),
        ({"namespace": 3}, {}, False),
        ({}, {"containers": {}}, False),
        ({}, {"initContainers": [3]}, False),
        ({}, {"volumes": ["x"]}, False),
        ({}, {"tolerations": "x"}, False),
    ],
)
def test_shape_of_a_manifest(metadata, spec, has_shape):
    assert manifests._has_shape(metadata, spec) is has_shape


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ([], "Object 'Kind' is missing"),
        ({"apiVersion": "v1"}, "Object 'Kind' is missing"),
        ({"kind": "Pod"}, "invalid pod: None, Kind=Pod"),
        ({"kind": "Pod", "apiVersion": "v1"}, "invalid pod: name is needed for the pod"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": ""}, "spec": {}}, "name is needed"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": 3}, "spec": {}}, "name is needed"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}, "(invalid pod)"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": 3}, "spec": {}}, "(invalid pod)"),
    ],
)  # fmt: skip
def test_manifest_that_is_no_pod(tree, problem):
    with pytest.raises(ManifestError, match=re.escape(problem)):
        static_pod(orjson.dumps(tree), PATH, "n")


def test_pod_keeps_its_own_fields():
    own = {"operator": "Exists", "effect": "NoExecute"}
    metadata = {"name": "a", "namespace": "b", "labels": {"c": "d"}, "finalizers": [], "uid": "x"}
    tree = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"tolerations": [own]}}
    pod = static_pod(orjson.dumps(tree), PATH, "n")
    assert (pod["spec"]["tolerations"], pod["metadata"]["namespace"]) == ([own], "b")
    assert pod["metadata"].keys() == {"name", "namespace", "labels", "annotations"}

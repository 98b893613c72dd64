import pytest

from mockube.client.kinds import REPLICA_SETS
from mockube.controller_manager.workloads.templates import equal_ignoring_hash, pod_of, without_hash

OWNER = {
    "kind": REPLICA_SETS.kind,
    "apiVersion": REPLICA_SETS.api_version,
    "metadata": {"name": "web-5d8", "namespace": "shop", "uid": "u1"},
}


def template(*, labels=None, metadata=None, **spec):
    metadata = {"labels": labels or {"app": "web"}, **(metadata or {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "a:1"}], **spec}}


def of_container(**fields):
    return template(containers=[{"name": "c", "image": "a:1", **fields}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(template(), template(labels={"app": "web", "pod-template-hash": "x"}), id="hash label"),
        pytest.param(template(), template(metadata={"creationTimestamp": None}), id="null is absent"),
        pytest.param(template(), template(metadata={"annotations": {}}), id="an empty map is absent"),
        pytest.param(template(), template(volumes=[], nodeSelector={}), id="an empty list is absent"),
        pytest.param(of_container(), of_container(resources={}), id="an empty struct is absent"),
        pytest.param(template(), template(hostNetwork=False, schedulerName=""), id="zeros are absent"),
        pytest.param(
            of_container(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}}),
            of_container(resources={"limits": {"cpu": "1", "memory": "1024Mi"}}),
            id="quantities are numbers",
        ),
    ],
)
def test_equal_templates_are_recognised(one, other):
    assert equal_ignoring_hash(one, other)
    assert equal_ignoring_hash(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(template(), template(labels={"app": "other"}), id="labels"),
        pytest.param(of_container(), of_container(image="a:2"), id="image"),
        pytest.param(template(), template(securityContext={}), id="pointer to an empty struct"),
        pytest.param(
            template(volumes=[{"name": "v"}]),
            template(volumes=[{"name": "v", "emptyDir": {}}]),
            id="volume without source",
        ),
        pytest.param(template(), template(terminationGracePeriodSeconds=0), id="a pointer at a zero"),
        pytest.param(
            template(nodeSelector={"a": ""}), template(nodeSelector={"b": ""}), id="keys of empty values"
        ),
        pytest.param(
            of_container(resources={"limits": {"cpu": "1"}}),
            of_container(resources={"limits": {"cpu": "2"}}),
            id="quantities",
        ),
        pytest.param(of_container(args=["a", "b"]), of_container(args=["b", "a"]), id="order"),
    ],
)
def test_different_templates_are_recognised(one, other):
    assert not equal_ignoring_hash(one, other)


def test_pod_is_built_from_template_and_owner():
    pod = pod_of(
        template(labels={"app": "web"}, metadata={"annotations": {"n": "1"}, "finalizers": ["a/b"]}), OWNER
    )
    assert pod == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": "web-5d8-",
            "namespace": "shop",
            "labels": {"app": "web"},
            "annotations": {"n": "1"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-5d8",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["a/b"],
        },
        "spec": {"containers": [{"name": "c", "image": "a:1"}]},
    }


def test_pod_template_hash_is_not_compared():
    assert without_hash(template(labels={"app": "web", "pod-template-hash": "x"})) == template()

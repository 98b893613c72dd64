"""Validation in linear time of two long lists, the members of one of which are looked up in the other."""

import pytest

from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.kinds.kind_rules import check_create, warn_create
from tests.support.hostile.doubling import check_linear

RESOURCES = {resource.kind: resource for group in GROUPS for resource in group.resources}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def names(count, prefix=""):
    return [f"{prefix}{number}" for number in range(count)]


def pod(*containers, annotations=(), **spec):
    metadata = {"name": "a", "namespace": "ns", "annotations": dict.fromkeys(annotations, "runtime/default")}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}, *containers], **spec}}


def pod_with_undeclared_claims(count):
    claims = [{"name": name} for name in names(count, "used")]
    declared = [{"name": name, "resourceClaimName": "r"} for name in names(count, "declared")]
    return pod({"name": "d", "resources": {"claims": claims}}, resourceClaims=declared)


def pod_with_mounts_and_devices(count):
    mounts = [{"name": name, "mountPath": f"/m/{name}"} for name in names(count, "m")]
    devices = [{"name": name, "devicePath": f"/d/{name}"} for name in names(count, "d")]
    return pod({"name": "d", "volumeMounts": mounts, "volumeDevices": devices})


def pod_with_annotations_of_containers(count):
    containers = [{"name": name} for name in names(count, "c")]
    return pod(*containers, annotations=[APPARMOR + name for name in names(count, "x")])


def pod_with_variables_of_files(count):
    source = {"fileKeyRef": {"volumeName": "x", "path": "p", "key": "k"}}
    containers = [{"name": name, "env": [{"name": "A", "valueFrom": source}]} for name in names(count, "c")]
    return pod(*containers, volumes=[{"name": name, "emptyDir": {}} for name in names(count, "v")])


def quota(count, **scopes):
    hard = {f"count/{name}.b": "1" for name in names(count, "a")}
    return {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"hard": hard, **scopes}}


def quota_with_scopes(count):
    return quota(count, scopes=["Terminating"] * count)


def quota_with_scope_selector(count):
    requirements = [{"scopeName": "PriorityClass", "operator": "Exists"}] * count
    return quota(count, scopeSelector={"matchExpressions": requirements})


@pytest.mark.timed
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("Pod", pod_with_undeclared_claims),
        ("Pod", pod_with_mounts_and_devices),
        ("Pod", pod_with_annotations_of_containers),
        ("Pod", pod_with_variables_of_files),
        ("ResourceQuota", quota_with_scopes),
        ("ResourceQuota", quota_with_scope_selector),
    ],
)
def test_related_lists_take_linear_time(kind, make):
    def validate(tree):
        return [*check_create(RESOURCES[kind], tree), *warn_create(RESOURCES[kind], tree)]

    check_linear(make, validate, 1_000)


def test_claim_that_is_not_declared_is_reported_with_all_declared_names():
    errors = check_create(RESOURCES["Pod"], pod_with_undeclared_claims(2))
    assert [str(error) for error in errors if ".claims" in error.field] == [
        f'spec.containers[1].resources.claims[{index}]: Not found: "used{index}": '
        "must be one of the names in pod.spec.resourceClaims: declared0, declared1"
        for index in (0, 1)
    ]

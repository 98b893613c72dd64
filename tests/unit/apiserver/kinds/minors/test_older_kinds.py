"""The kinds that a server of each minor version serves equal those of upstream's discovery."""

from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds import built_in_kinds as registry
from mockube.apiserver.kinds.served_kinds import kinds_of

SERVED = orjson.loads(Path(__file__).with_name("served.json").read_bytes())
"""Names of resources and subresources, by minor version and by group version."""


def names(kinds):
    found = {}
    for group in kinds.groups:
        for version in group.versions:
            listed = found.setdefault(f"{group.name}/{version}".lstrip("/"), [])
            for row in group.resources:
                if row.version == version:
                    listed += [row.name, *(f"{row.name}/{one.name}" for one in row.subresources)]
    return {version: " ".join(listed) for version, listed in found.items()}


@pytest.mark.parametrize("minor", minors.MINORS)
def test_minor_serves_upstreams_resources(minor):
    assert names(kinds_of(minor)) == SERVED[minor]


@pytest.mark.parametrize("minor", minors.OLDER)
def test_groups_have_upstreams_order(minor):
    assert [*names(kinds_of(minor))] == [*SERVED[minor]]


def test_newest_kinds_are_those_of_registry():
    assert kinds_of(minors.NEWEST) is registry.NEWEST


def test_policies_are_hashed_as_older_minor_stores_them():
    def hashed(minor):
        return {row.resource.name: row.resource.hashed_version for row in kinds_of(minor).all}

    assert hashed("1.36")["mutatingadmissionpolicies"] == "v1beta1"
    assert not hashed("1.37")["mutatingadmissionpolicies"]


@pytest.mark.parametrize(("minor", "hidden"), [("1.32", ["ipaddresses", "servicecidrs"]), ("1.33", [])])
def test_hidden_resources_of_minor_are_stored(minor, hidden):
    assert [row.name for row in kinds_of(minor).hidden] == hidden


@pytest.mark.parametrize(
    ("minor", "text"),
    [("1.32", ""), ("1.33", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")],
)
def test_version_is_deprecated_since_its_minor(minor, text):
    (row,) = (kind.resource for kind in kinds_of(minor).all if kind.resource.name == "endpoints")
    assert row.deprecated == text


def disabled_fields(minor, resource):
    strategy = kinds_of(minor).strategies.get(resource)
    return {*strategy.disabled.paths} if strategy else set()


PODS, SERVICES = GroupResource("", "pods"), GroupResource("", "services")
SLICES = GroupResource("resource.k8s.io", "resourceslices")
CLAIMS = GroupResource("resource.k8s.io", "resourceclaims")
DEPLOYMENTS = GroupResource("apps", "deployments")


@pytest.mark.parametrize(
    ("resource", "path", "off"),
    [
        (PODS, "spec.hostUsers", ["1.32", "1.31", "1.30", "1.29"]),
        (PODS, "spec.resources", ["1.33", "1.32"]),
        (DEPLOYMENTS, "spec.template.spec.hostnameOverride", ["1.34"]),
        (DEPLOYMENTS, "status.terminatingReplicas", ["1.34", "1.33"]),
        (SERVICES, "spec.trafficDistribution", ["1.30"]),
        (SLICES, "spec.devices.*.taints", ["1.35", "1.34"]),
        (CLAIMS, "spec.devices.requests.*.exactly.tolerations", ["1.35", "1.34"]),
        (SERVICES, "status.loadBalancer.ingress.*.ipMode", ["1.29"]),
    ],
)
def test_fields_of_disabled_gates_are_dropped(resource, path, off):
    assert [minor for minor in minors.OLDER if path in disabled_fields(minor, resource)] == off


def test_gates_disabled_in_newest_minor_are_disabled_before():
    newest = registry.NEWEST.strategies[PODS].disabled.paths
    assert {*newest} <= disabled_fields("1.29", PODS)


def spec_after_drop(minor, spec, old=None):
    pod = {"metadata": {}, "spec": spec}
    fields = kinds_of(minor).strategies[PODS].disabled
    fields.drop(pod, None if old is None else {"metadata": {}, "spec": old})
    return pod["spec"]


def test_image_volumes_are_dropped_with_their_mounts():
    volumes = [{"name": "a", "image": {"reference": "r"}}, {"name": "b", "emptyDir": {}}]
    mounts = [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}]

    def spec():
        return {"volumes": [*volumes], "containers": [{"name": "c", "volumeMounts": [*mounts]}]}

    assert spec_after_drop("1.34", spec()) == {
        "volumes": volumes[1:],
        "containers": [{"name": "c", "volumeMounts": mounts[1:]}],
    }
    assert spec_after_drop("1.35", spec()) == spec()
    assert spec_after_drop("1.34", spec(), old=spec()) == spec()


def test_sleep_action_is_dropped_with_empty_lifecycle():
    hooks = {"preStop": {"sleep": {"seconds": 1}}, "postStart": {"exec": {"command": ["a"]}}}
    only = {"preStop": {"sleep": {"seconds": 1}}}
    containers = [{"name": "a", "lifecycle": hooks}, {"name": "b", "lifecycle": only}]
    assert spec_after_drop("1.29", {"containers": containers}) == {
        "containers": [{"name": "a", "lifecycle": {"postStart": {"exec": {"command": ["a"]}}}}, {"name": "b"}]
    }
    assert hooks["preStop"] == {"sleep": {"seconds": 1}}


def test_container_restart_policies_are_dropped_except_for_sidecars():
    spec = {
        "containers": [{"name": "a", "restartPolicy": "Never"}],
        "initContainers": [
            {"name": "b", "restartPolicy": "Always"},
            {"name": "c", "restartPolicy": "Never", "restartPolicyRules": [{}]},
        ],
    }
    assert spec_after_drop("1.34", spec) == {
        "containers": [{"name": "a"}],
        "initContainers": [{"name": "b", "restartPolicy": "Always"}, {"name": "c"}],
    }


def test_unmasked_proc_mount_becomes_default():
    spec = {"containers": [{"name": "a", "securityContext": {"procMount": "Unmasked"}}]}
    assert spec_after_drop("1.32", spec)["containers"][0]["securityContext"] == {"procMount": "Default"}

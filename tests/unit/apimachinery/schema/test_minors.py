"""Schemas of older minor releases, and the types that are created from them."""

import pytest

from mockube.apimachinery.schema import minors
from mockube.apimachinery.schema.builtin import load

CONTAINER = "io.k8s.api.core.v1.Container"
SERVICE = "io.k8s.api.core.v1.ServiceSpec"


def test_newest_minor_has_no_changes():
    assert minors.changes(minors.NEWEST, "structs") == {}


def test_minors_are_compared_as_numbers():
    assert minors.is_before("1.9", "1.29")
    assert not minors.is_before("1.31", "1.31")


@pytest.mark.parametrize(
    ("definition", "field", "since"),
    [
        (CONTAINER, "restartPolicyRules", "1.34"),
        ("io.k8s.api.core.v1.PodSpec", "resources", "1.32"),
        ("io.k8s.api.core.v1.PodSpec", "hostnameOverride", "1.34"),
        (SERVICE, "trafficDistribution", "1.30"),
        ("io.k8s.api.batch.v1.JobSpec", "managedBy", "1.30"),
        ("io.k8s.api.apps.v1.DeploymentStatus", "terminatingReplicas", "1.33"),
        ("io.k8s.api.core.v1.PodSecurityContext", "appArmorProfile", "1.30"),
        ("io.k8s.api.core.v1.VolumeMount", "recursiveReadOnly", "1.30"),
    ],
)
def test_field_exists_from_its_minor_on(definition, field, since):
    for minor in minors.MINORS:
        is_there = field in load(minor).definition(definition).fields
        assert is_there == (not minors.is_before(minor, since)), minor


def test_fields_keep_order_of_their_minor():
    names = [*load("1.29").definition(CONTAINER).fields]
    assert names.index("resources") < names.index("resizePolicy") < names.index("restartPolicy")


def test_unset_times_are_null_until_1_33():
    metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    omitted = {
        minor: load(minor).definition(metadata).fields["creationTimestamp"].omit_zero
        for minor in minors.MINORS
    }
    assert [minor for minor, is_omitted in omitted.items() if not is_omitted] == [
        "1.33",
        "1.32",
        "1.31",
        "1.30",
        "1.29",
    ]


def test_kinds_of_removed_versions_are_known():
    assert load("1.30").kind("resource.k8s.io/v1alpha2", "PodSchedulingContext") is not None
    assert load("1.30").kind("resource.k8s.io/v1", "DeviceClass") is None
    assert load().kind("resource.k8s.io/v1alpha2", "PodSchedulingContext") is None


def test_descriptions_are_those_of_minor():
    found = load("1.29").definition(SERVICE).fields["type"]
    assert found.description.startswith("type determines how the Service is exposed.")

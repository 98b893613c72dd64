"""Why a minor does not have or keep a field."""

import pytest

from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.schema import builtin
from mockube.lint.dropped_fields import DroppedField
from mockube.lint.field_hints import gate_hint, gated_field, is_kept_if_zero, unknown_field_hint

DEPLOYMENTS = GroupResource("apps", "deployments")
STATEFUL_SETS = GroupResource("apps", "statefulsets")
TEMPLATE = "spec.template.spec"


@pytest.mark.parametrize(
    ("field", "minor", "hint"),
    [
        ("spec.template.spec.containers[0].restartPolicyRules", "1.31", " (new in 1.34)"),
        ("spec.replica", "1.37", ' (did you mean "replicas"?)'),
        ("spec.template.spec.containers[0].imagepullpolicy", "1.37", ' (did you mean "imagePullPolicy"?)'),
        ("spec.template.spec.containers[0].ports[0].zzz", "1.37", ""),
        ("spec.nothing.here", "1.37", ""),
        ("spec.template.spec.workloadRef", "1.37", " (removed in 1.36)"),
    ],
)
def test_unknown_field_is_newer_older_or_misspelt(field, minor, hint):
    schema = builtin.load(minor).kind("apps/v1", "Deployment")
    assert unknown_field_hint(schema, "apps/v1", "Deployment", field, minor) == hint


@pytest.mark.parametrize(
    ("resource", "path", "value", "minor", "hint"),
    [
        (PODS, "spec.hostUsers", True, "1.30", ": its feature gate UserNamespacesSupport is off before 1.33"),
        (
            DEPLOYMENTS,
            f"{TEMPLATE}.containers[0].lifecycle.preStop.sleep",
            {"seconds": 5},
            "1.29",
            ": its feature gate PodLifecycleSleepAction is off before 1.30",
        ),
        (
            DEPLOYMENTS,
            f"{TEMPLATE}.volumes[1]",
            {"name": "v", "image": {"reference": "a"}},
            "1.31",
            ": its feature gate ImageVolume is off before 1.35",
        ),
        (
            STATEFUL_SETS,
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            2,
            "1.31",
            ": its feature gate MaxUnavailableStatefulSet is off before 1.37",
        ),
        (PODS, "spec.somethingElse", 1, "1.37", ""),
        (GroupResource("example.com", "websites"), "spec.image", 1, "1.37", ""),
    ],
)
def test_dropped_field_names_its_gate(resource, path, value, minor, hint):
    gated_path, gate = gated_field(resource, DroppedField(path, path, value))
    assert (gated_path, gate_hint(gate, minor)) == (path, hint)


def test_field_of_gate_is_between_dropped_field_and_inner_one():
    dropped = DroppedField("spec.updateStrategy", "spec.updateStrategy.rollingUpdate.maxUnavailable", 1)
    assert gated_field(STATEFUL_SETS, dropped) == (dropped.inner_path, "MaxUnavailableStatefulSet")
    sleep = f"{TEMPLATE}.containers[0].lifecycle.preStop.sleep"
    dropped = DroppedField(f"{TEMPLATE}.containers[0].lifecycle", f"{sleep}.seconds", 1)
    assert gated_field(DEPLOYMENTS, dropped) == (sleep, "PodLifecycleSleepAction")


@pytest.mark.parametrize(
    ("field", "is_kept"), [("spec.hostUsers", True), ("spec.hostNetwork", False), ("spec.a.b", False)]
)
def test_zero_is_kept_by_pointers(field, is_kept):
    assert is_kept_if_zero(builtin.load("1.30").kind("v1", "Pod"), field) is is_kept

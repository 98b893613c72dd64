"""Validation of PriorityClasses."""

import pytest

from tests.support.field_rules import create_errors, update_errors

VERSION = "scheduling.k8s.io/v1"


def priority(name="p", **fields):
    return {"metadata": {"name": name}, "value": 1, **fields}


CLASSES = [
    pytest.param(priority(preemptionPolicy="Never"), [], id="class"),
    pytest.param(priority(value=-2147483648), [], id="negative value"),
    pytest.param(priority(value=1000000000), [], id="highest value"),
    pytest.param(priority(value=1000000001),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"], id="value too high"),
    pytest.param(priority(preemptionPolicy=""), ["preemptionPolicy: Required value"], id="empty preemption"),
    pytest.param(priority(preemptionPolicy="Always"),
        ['preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"'],
        id="unknown preemption"),
    pytest.param(priority("system-node-critical", value=2000001000), [], id="class of the system"),
    pytest.param(priority("system-cluster-critical", value=1),
        [("metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
          "only. error: value of system-cluster-critical PriorityClass must be 2000000000")],
        id="class of the system with another value"),
    pytest.param(priority("system-cluster-critical", value=2000000000, globalDefault=True),
        [("metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
          "only. error: globalDefault of system-cluster-critical PriorityClass must be false")],
        id="class of the system for all pods"),
    pytest.param(priority("system-a"),
        [("metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
          "only. error: system-a is not a known system priority class")], id="unknown class of the system"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_classes_are_validated(change, expected):
    assert create_errors(VERSION, "PriorityClass", change) == expected


CHANGES = [
    pytest.param({}, {"description": "a", "globalDefault": True}, [], id="description"),
    pytest.param({}, {"value": 2}, ["value: Forbidden: may not be changed in an update."], id="value"),
    pytest.param({"preemptionPolicy": "Never"}, {"preemptionPolicy": "PreemptLowerPriority"},
        ['preemptionPolicy: Invalid value: "PreemptLowerPriority": field is immutable'], id="preemption"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_classes_are_validated(old, new, expected):
    assert update_errors(VERSION, "PriorityClass", priority(**old), priority(**new)) == expected

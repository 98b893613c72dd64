"""Validation of Leases."""

import pytest

from tests.support.field_rules import create_errors, update_errors


def lease(spec):
    return {"metadata": {"name": "l", "namespace": "ns"}, "spec": spec}


LEASES = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"leaseDurationSeconds": 1, "leaseTransitions": 0}, [], id="numbers"),
    pytest.param({"leaseDurationSeconds": 0},
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"], id="duration zero"),
    pytest.param({"leaseTransitions": -1},
        ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"], id="negative transitions"),
    pytest.param({"strategy": "OldestEmulationVersion", "preferredHolder": "a"}, [], id="strategy"),
    pytest.param({"strategy": "example.com/a"}, [], id="strategy of another domain"),
    pytest.param({"strategy": "example.com/a b"},
        [('spec.strategy.strategy: Invalid value: "example.com/a b": name part must consist of alphanumeric '
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
          "or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="invalid strategy of another domain"),
    pytest.param({"strategy": "Newest"},
        ['spec.strategy.strategy: Unsupported value: "Newest": supported values: "OldestEmulationVersion"'],
        id="unknown strategy"),
    pytest.param({"preferredHolder": "a"},
        ["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
        id="preferred holder without strategy"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), LEASES)
def test_leases_are_validated(change, expected):
    assert create_errors("coordination.k8s.io/v1", "Lease", lease(change)) == expected


CHANGES = [
    pytest.param({"holderIdentity": "a"}, {"holderIdentity": "b"}, [], id="holder"),
    pytest.param({}, {"leaseDurationSeconds": -1},
        ["spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0"], id="duration becomes invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_leases_are_validated(old, new, expected):
    assert update_errors("coordination.k8s.io/v1", "Lease", lease(old), lease(new)) == expected

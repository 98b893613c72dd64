"""Validation of PodDisruptionBudgets."""

import pytest

from tests.support.field_rules import create_errors, update_errors

BAD = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


def budget(spec, status=None):
    return {"metadata": {"name": "b", "namespace": "ns"}, "spec": spec, "status": status or {}}


BUDGETS = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"minAvailable": 0}, [], id="number"),
    pytest.param({"minAvailable": -1},
        ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"], id="negative number"),
    pytest.param({"maxUnavailable": "100%"}, [], id="percentage"),
    pytest.param({"maxUnavailable": "101%"},
        ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'], id="percentage too high"),
    pytest.param({"minAvailable": "1"},
        [('spec.minAvailable: Invalid value: "1": a valid percent string must be a numeric string followed by '
          "an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')")], id="no percentage"),
    pytest.param({"minAvailable": 1, "maxUnavailable": 1},
        [("spec: Invalid value: "
          '{"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: '
          "minAvailable and maxUnavailable cannot be both set")], id="both"),
    pytest.param({"selector": {}}, [], id="empty selector"),
    pytest.param({"selector": BAD},
        [('spec.selector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
    pytest.param({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, [], id="eviction policy"),
    pytest.param({"unhealthyPodEvictionPolicy": "Never"},
        [('spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", '
          '"IfHealthyBudget"')], id="unknown eviction policy"),
    pytest.param({"unhealthyPodEvictionPolicy": ""},
        [('spec.unhealthyPodEvictionPolicy: Unsupported value: "": supported values: "AlwaysAllow", '
          '"IfHealthyBudget"')], id="empty eviction policy"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), BUDGETS)
def test_budgets_are_validated(change, expected):
    assert create_errors("policy/v1", "PodDisruptionBudget", budget(change)) == expected


CHANGES = [
    pytest.param({"minAvailable": 1}, {"maxUnavailable": "1%"}, [], id="amount"),
    pytest.param({"selector": BAD}, {"selector": BAD, "minAvailable": 1}, [], id="selector stays invalid"),
    pytest.param({}, {"selector": BAD},
        [('spec.selector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="selector becomes invalid"),
    pytest.param({}, {"minAvailable": -1},
        ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"], id="amount becomes invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_budgets_are_validated(old, new, expected):
    assert update_errors("policy/v1", "PodDisruptionBudget", budget(old), budget(new)) == expected


STATUS = [
    pytest.param({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        [], id="counts"),
    pytest.param({"disruptionsAllowed": -1, "currentHealthy": -1, "desiredHealthy": -1, "expectedPods": -1},
        ["status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0",
         "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
         "status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0",
         "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({"conditions": [{"type": "A", "status": "True", "reason": "B", "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        [], id="condition"),
    pytest.param({"conditions": [{}]},
        ["status.conditions[0].type: Required value: is required",
         "status.conditions[0].status: Required value",
         "status.conditions[0].lastTransitionTime: Required value",
         "status.conditions[0].reason: Required value"], id="empty condition"),
    pytest.param({"conditions": [{"type": "A", "status": "True", "reason": "B", "lastTransitionTime": "2030-01-01T00:00:00Z"}] * 2},
        ['status.conditions[1]: Duplicate value: "A"'], id="condition twice"),
    pytest.param({"conditions": [{"type": "A b", "status": "Yes", "reason": "1", "lastTransitionTime": "2030-01-01T00:00:00Z", "observedGeneration": -1}]},
        [('status.conditions[0].type: Invalid value: "A b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         'status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"',
         "status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
         ('status.conditions[0].reason: Invalid value: "1": a condition reason must start with alphabetic '
          "character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an "
          "alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  "
          "or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')")],
        id="condition with invalid fields"),
    pytest.param({"conditions": [{"type": "A", "status": "True", "reason": "B" * 1025, "message": "m" * 32769, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        ["status.conditions[0].reason: Too long: may not be more than 1024 bytes",
         "status.conditions[0].message: Too long: may not be more than 32768 bytes"], id="condition with long texts"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATUS)
def test_status_of_budgets_is_validated(change, expected):
    assert (
        update_errors("policy/v1", "PodDisruptionBudget", budget({}), budget({}, change), "status")
        == expected
    )

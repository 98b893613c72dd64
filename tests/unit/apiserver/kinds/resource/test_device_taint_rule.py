"""DeviceTaintRules: their validation, and the time of their taints."""

from datetime import UTC, datetime

import pytest

from mockube.apiserver.kinds.resource.device_taint_rule import KIND as ROW
from tests.support import field_rules
from tests.support.server.requests import NOW_TEXT, request

KIND = "resource.k8s.io/v1", "DeviceTaintRule"


def rule(effect="NoExecute", added="2030-01-01T00:00:00Z", selector=None, **taint):
    spec = {"taint": {"key": "a", "effect": effect, "timeAdded": added, **taint}}
    return {"metadata": {"name": "a"}, "spec": spec | ({"deviceSelector": selector} if selector else {})}


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        (rule(selector={"driver": "a.b", "pool": "p/q", "device": "d"}), []),
        (rule(effect=""), ["spec.taint.effect: Required value"]),
        (
            rule(effect="X"),
            [
                'spec.taint.effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"'
            ],
        ),
        (rule(value="a b"), ['spec.taint.value: Invalid value: "a b"']),
        (rule(key=""), ['spec.taint.key: Invalid value: "": name part must be non-empty', "spec.taint.key"]),
        (rule(selector={"device": "A"}), ['spec.deviceSelector.device: Invalid value: "A"']),
    ],
)
def test_new_rule_is_validated(tree, found):
    errors = field_rules.create_errors(*KIND, tree)
    assert len(errors) == len(found)
    assert all(map(str.startswith, errors, found))


def test_unchanged_effect_is_not_checked_again():
    assert field_rules.update_errors(*KIND, rule("X"), rule("X", value="b")) == []


def test_status_has_limited_conditions():
    conditions = [
        {"type": f"t{i}", "status": "True", "reason": "R", "lastTransitionTime": NOW_TEXT, "message": ""}
        for i in range(9)
    ]
    assert field_rules.update_errors(
        *KIND, rule(), rule() | {"status": {"conditions": conditions}}, "status"
    ) == ["status.conditions: Too many: 9: must have at most 8 items"]


@pytest.mark.parametrize(
    ("new", "added"),
    [
        (rule("NoSchedule"), NOW_TEXT),
        (rule("NoSchedule", "2031-01-01T00:00:00Z"), "2031-01-01T00:00:00Z"),
        (rule(value="b"), "2030-01-01T00:00:00Z"),
    ],
)
def test_time_of_taint_is_that_of_its_effect(new, added):
    ROW.strategy.prepare_update[""](new, rule(), request())
    assert new["spec"]["taint"]["timeAdded"] == added


def test_row_shows_taint():
    now = datetime(2030, 1, 1, 1, tzinfo=UTC)
    assert ROW.printer.cells(rule(value="b"), now) == ["a", "a", "b", "NoExecute", "60m", "<unknown>"]

from datetime import UTC, datetime

import pytest

from mockube.apimachinery import conditions

NOW = datetime(2030, 1, 1, 0, 0, 5, tzinfo=UTC)
THEN = "2029-12-31T23:59:59Z"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": THEN, "reason": "Up", "lastProbeTime": THEN}
POD = {"status": {"conditions": [{"type": "Initialized", "status": "False"}, READY]}}


def test_get_returns_condition_of_type():
    assert conditions.get(POD, "Ready") is READY
    assert conditions.get(POD, "Available") is None


def test_find_and_without_divide_a_list_by_type():
    (initialized, _) = present = POD["status"]["conditions"]
    assert conditions.find(present, "Ready") is READY
    assert conditions.find(present, "Available") is None
    assert conditions.without(present, "Ready") == [initialized]
    assert conditions.without(present, "Available") == present


@pytest.mark.parametrize(
    ("obj", "condition_type", "status"),
    [
        pytest.param(POD, "Ready", "True", id="true"),
        pytest.param(POD, "Initialized", "False", id="false"),
        pytest.param(POD, "Available", "Unknown", id="absent"),
        pytest.param({"status": {"conditions": None}}, "Ready", "Unknown", id="no conditions"),
        pytest.param({}, "Ready", "Unknown", id="no status"),
    ],
)
def test_status_returns_status_of_condition(obj, condition_type, status):
    assert conditions.status(obj, condition_type) == status
    assert conditions.is_true(obj, condition_type) is (status == "True")
    assert conditions.is_false(obj, condition_type) is (status == "False")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(
            {"type": "Ready", "status": "True", "reason": "StillUp"},
            READY | {"reason": "StillUp"},
            id="unchanged status keeps the time",
        ),
        pytest.param(
            {"type": "Ready", "status": "False", "message": "down"},
            {
                "type": "Ready",
                "status": "False",
                "lastTransitionTime": "2030-01-01T00:00:05Z",
                "lastProbeTime": THEN,
                "message": "down",
            },
            id="new status has a new time and drops old reason",
        ),
        pytest.param(
            {
                "type": "Ready",
                "status": "False",
                "reason": "Up",
                "lastTransitionTime": "2029-01-01T00:00:00Z",
            },
            READY | {"status": "False", "lastTransitionTime": "2029-01-01T00:00:00Z"},
            id="explicit time",
        ),
    ],
)
def test_updated_condition_keeps_time_unless_status_changes(condition, expected):
    other = {"type": "Other", "status": "True"}
    assert conditions.set_condition([READY, other], condition, NOW) == [expected, other]
    assert READY["reason"] == "Up"


def test_new_condition_is_appended():
    added = {"type": "Available", "status": "True"}
    assert conditions.set_condition([READY], added, NOW) == [
        READY,
        added | {"lastTransitionTime": "2030-01-01T00:00:05Z"},
    ]


def test_condition_without_transition_time_gets_one():
    old = {"type": "Ready", "status": "True"}
    assert conditions.set_condition([old], old, NOW) == [old | {"lastTransitionTime": "2030-01-01T00:00:05Z"}]


def test_with_condition_sets_condition_of_object():
    changed = conditions.with_condition({}, {"type": "Ready", "status": "True"}, NOW)
    assert conditions.is_true(changed, "Ready")
    changed = conditions.with_condition(POD, {"type": "Ready", "status": "False"}, NOW)
    assert conditions.is_false(changed, "Ready")
    assert conditions.is_true(POD, "Ready")

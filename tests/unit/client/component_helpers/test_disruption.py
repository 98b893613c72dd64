"""The patch that adds the DisruptionTarget condition to a pod."""

from datetime import UTC, datetime

from mockube.client.component_helpers.disruption import disruption_status

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TIME = "2030-01-01T00:00:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True"}
TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "r", "message": "m"}


def status_of(*conditions, generation=None):
    return disruption_status({"status": {"conditions": [*conditions]}}, "r", "m", NOW, generation)


def test_disruption_condition_is_appended():
    assert status_of(SCHEDULED, generation=3) == {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}],
        "conditions": [{**TARGET, "observedGeneration": 3, "lastTransitionTime": TIME}],
    }


def test_changed_reason_replaces_condition_and_keeps_time():
    earlier = {**TARGET, "reason": "other", "lastTransitionTime": "2029-01-01T00:00:00Z"}
    assert status_of(earlier, SCHEDULED)["conditions"] == [
        {**TARGET, "lastTransitionTime": "2029-01-01T00:00:00Z"}
    ]


def test_unchanged_condition_is_not_written():
    assert status_of({**TARGET, "lastTransitionTime": TIME}) == {}

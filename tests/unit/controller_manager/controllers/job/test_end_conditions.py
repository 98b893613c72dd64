"""When and why a Job ends, as a table."""

from datetime import timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.job import end_conditions
from mockube.controller_manager.controllers.job.backoff import Failures
from mockube.controller_manager.controllers.job.state import state_of

NOW = SteppedClock().now()
INDEXED = {"completionMode": "Indexed", "backoffLimitPerIndex": 1}
STARTED = {"startTime": format_time(NOW - timedelta(seconds=60))}


def job(status=None, *, restarts="Never", **spec):
    template = {"spec": {"restartPolicy": restarts}}
    return {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"backoffLimit": 2, "completions": 3, "template": template, **spec},
        "status": status or {},
    }


def with_restarts(count, *, phase="Running", field="containerStatuses"):
    status = {"phase": phase, field: [{"name": "c", "restartCount": count}]}
    return PodView.of({"metadata": {"name": "p", "namespace": "default"}, "spec": {}, "status": status})


def true(kind, **more):
    return {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m", **more}]}


def end_of(subject, *pods):
    end = end_conditions.end_of(state_of(subject, pods, Failures()), NOW)
    return None if end is None else (end["type"], end["reason"])


@pytest.mark.parametrize(
    ("subject", "pods", "expected"),
    [
        (job(), [], None),
        (job({"failed": 2}), [], None),
        (job({"failed": 3}), [], ("FailureTarget", "BackoffLimitExceeded")),
        (job(restarts="OnFailure"), [with_restarts(1)], None),
        (job(restarts="OnFailure"), [with_restarts(2)], ("FailureTarget", "BackoffLimitExceeded")),
        (job(restarts="OnFailure"), [with_restarts(1)] * 2, ("FailureTarget", "BackoffLimitExceeded")),
        (
            job(restarts="OnFailure"),
            [with_restarts(2, phase="Pending")],
            ("FailureTarget", "BackoffLimitExceeded"),
        ),
        (
            job(restarts="OnFailure"),
            [with_restarts(2, field="initContainerStatuses")],
            ("FailureTarget", "BackoffLimitExceeded"),
        ),
        (job(restarts="OnFailure"), [with_restarts(2, phase="Succeeded")], None),
        (job(restarts="OnFailure", backoffLimit=0), [with_restarts(0)], None),
        (
            job(restarts="OnFailure", backoffLimit=0),
            [with_restarts(1)],
            ("FailureTarget", "BackoffLimitExceeded"),
        ),
        (job(), [with_restarts(9)], None),
        (job(STARTED, activeDeadlineSeconds=61), [], None),
        (job(STARTED, activeDeadlineSeconds=60), [], ("FailureTarget", "DeadlineExceeded")),
        (job(STARTED, activeDeadlineSeconds=60, suspend=True), [], None),
        (job(activeDeadlineSeconds=60), [], None),
        (job({"failedIndexes": "0"}, **INDEXED), [], None),
        (job({"failedIndexes": "0"}, maxFailedIndexes=1, **INDEXED), [], None),
        (
            job({"failedIndexes": "0"}, maxFailedIndexes=0, **INDEXED),
            [],
            ("FailureTarget", "MaxFailedIndexesExceeded"),
        ),
        (job({"failedIndexes": "0", "completedIndexes": "1"}, **INDEXED), [], None),
        (
            job({"failedIndexes": "0", "completedIndexes": "1,2"}, **INDEXED),
            [],
            ("FailureTarget", "FailedIndexes"),
        ),
        (job({"completedIndexes": "0-2"}, **INDEXED), [], None),
        (
            job({"completedIndexes": "0"}, successPolicy={"rules": [{"succeededCount": 1}]}, **INDEXED),
            [],
            ("SuccessCriteriaMet", "SuccessPolicy"),
        ),
        (job({"completedIndexes": "0"}, successPolicy={"rules": [{"succeededCount": 1}]}), [], None),
        (job(true("FailureTarget")), [], ("Failed", "R")),
        (job(true("FailureTarget", status="False")), [], None),
        (job(true("SuccessCriteriaMet") | {"failed": 9}), [], ("SuccessCriteriaMet", "R")),
    ],
)
def test_job_ends_for_a_reason(subject, pods, expected):
    assert end_of(subject, *pods) == expected


@pytest.mark.parametrize(
    ("present", "new", "expected"),
    [
        ([], {"status": "True"}, ["True"]),
        ([], {"status": "False"}, []),
        ([{"type": "Other", "status": "True"}], {"status": "True"}, ["True", "True"]),
        ([{"type": "Suspended", "status": "True"}], {"status": "False"}, ["False"]),
    ],
)
def test_absent_condition_is_not_added_as_false(present, new, expected):
    condition = end_conditions.condition("Suspended", "R", "m", NOW, **new)
    assert [each["status"] for each in end_conditions.with_condition(present, condition)] == expected


@pytest.mark.parametrize(
    ("change", "is_same"),
    [({}, True), ({"status": "False"}, False), ({"reason": "x"}, False), ({"message": "x"}, False)],
)
def test_condition_with_the_same_fields_remains(change, is_same):
    present = [end_conditions.condition("Suspended", "R", "m", NOW)]
    later = end_conditions.condition("Suspended", "R", "m", NOW + timedelta(seconds=9)) | change
    assert (end_conditions.with_condition(present, later) is present) is is_same


@pytest.mark.parametrize(
    ("status", "spec", "active", "expected"),
    [
        ({"succeeded": 3}, {}, 0, True),
        ({"succeeded": 3}, {}, 1, False),
        ({"succeeded": 2}, {}, 0, False),
        ({"succeeded": 1}, {"completions": None}, 0, True),
        ({}, {"completions": None}, 0, False),
        ({}, {"completions": 0}, 0, True),
    ],
)
def test_job_has_enough_successes_when_nothing_is_active(status, spec, active, expected):
    found = state_of(job(status, **spec), (), Failures())
    assert end_conditions.has_enough_successes(found, active) is expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (None, False),
        ("SuccessCriteriaMet", True),
        ("Complete", True),
        ("FailureTarget", False),
        ("Failed", False),
    ],
)
def test_end_is_a_success(end, expected):
    assert end_conditions.is_success(end and {"type": end}) is expected

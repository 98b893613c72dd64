"""Validation of the status of Jobs."""

import pytest

from tests.support.field_rules import changed, update_errors
from tests.support.valid_workloads import JOB

START, END = "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}
LIMITED = {**INDEXED, "backoffLimitPerIndex": 1}


def conditions(*types):
    return {"conditions": [{"type": type_, "status": "True"} for type_ in types]}


COMPLETE = {**conditions("SuccessCriteriaMet", "Complete"), "startTime": START, "completionTime": END}
FAILED = {**conditions("FailureTarget", "Failed"), "startTime": START}


def job(spec, status):
    return {**changed(JOB, {f"spec.{path}": value for path, value in spec.items()}), "status": status}


def status_errors(new, spec=None, old=None):
    """Return the errors of a status, without its path."""
    texts = update_errors("batch/v1", "Job", job(spec or {}, old or {}), job(spec or {}, new), "status")
    return [text.removeprefix("status.") for text in texts]


STATUSES = [
    pytest.param(({"active": 1, "ready": 1, "succeeded": 0, "failed": 0, "terminating": 0},), [], id="counts"),
    pytest.param(({"active": -1, "ready": -1, "succeeded": -1, "failed": -1, "terminating": -1},),
        ["active: Invalid value: -1: must be greater than or equal to 0",
         "succeeded: Invalid value: -1: must be greater than or equal to 0",
         "failed: Invalid value: -1: must be greater than or equal to 0",
         "ready: Invalid value: -1: must be greater than or equal to 0",
         "terminating: Invalid value: -1: must be greater than or equal to 0",
         "failed: Invalid value: -1: cannot decrease the failed counter",
         "succeeded: Invalid value: -1: cannot decrease the succeeded counter"], id="negative counts"),
    pytest.param(({"active": 1, "ready": 2},),
        ["ready: Invalid value: 2: cannot set more ready pods than active"], id="more ready than active"),
    pytest.param(({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]}},), [], id="uncounted pods"),
    pytest.param(({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a"]}},),
        ['uncountedTerminatedPods.failed[0]: Duplicate value: "a"'], id="uncounted pod twice"),
    pytest.param(({"uncountedTerminatedPods": {"succeeded": [""]}},),
        ['uncountedTerminatedPods.succeeded[0]: Invalid value: "": must not be empty'], id="uncounted pod without UID"),
    pytest.param((COMPLETE,), [], id="complete"),
    pytest.param(({**COMPLETE, "startTime": None},),
        ["startTime: Required value: startTime is required for finished job"], id="complete without start"),
    pytest.param(({**COMPLETE, "completionTime": None},),
        ["completionTime: Required value: completionTime is required for Complete jobs"], id="complete without end"),
    pytest.param(({**COMPLETE, "startTime": END, "completionTime": START},),
        ['completionTime: Invalid value: "2030-01-01T00:00:00Z": must be equal to or after `startTime`'],
        id="complete before its start"),
    pytest.param(({**COMPLETE, **conditions("Complete")},),
        [("conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
          "condition")], id="complete without success"),
    pytest.param(({**COMPLETE, **conditions("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget")},),
        ["conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
         "conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
         "conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
         "conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
        id="complete and failed"),
    pytest.param(({**COMPLETE, "active": 1},),
        ["active: Invalid value: 1: active>0 is invalid for finished job"], id="complete with active pods"),
    pytest.param(({**COMPLETE, "terminating": 1},),
        ["terminating: Invalid value: 1: terminating>0 is invalid for finished job"],
        id="complete with terminating pods"),
    pytest.param(({**COMPLETE, "uncountedTerminatedPods": {"failed": ["a"]}},),
        [('uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: must be empty for '
          "finished job")], id="complete with uncounted pods"),
    pytest.param(({"startTime": START, "completionTime": END},),
        [('completionTime: Invalid value: "2030-01-01T00:01:00Z": cannot set completionTime when there is no '
          "Complete=True condition")], id="end without completion"),
    pytest.param((FAILED,), [], id="failed"),
    pytest.param(({**FAILED, **conditions("Failed")},),
        ["conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"],
        id="failed without target"),
    pytest.param(({**FAILED, "startTime": None},),
        ["startTime: Required value: startTime is required for finished job"], id="failed without start"),
    pytest.param((conditions("SuccessCriteriaMet", "FailureTarget"),),
        ["conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
        id="success and target of a failure"),
    pytest.param(({**COMPLETE, **conditions("Complete")}, {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}}),
        [("conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
          "condition"),
         ("conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless "
          "SuccessCriteriaMet=True")], id="complete by policy without success"),
    pytest.param(({**COMPLETE, "startTime": None}, {"suspend": True, "completions": 0}),
        [], id="empty suspended Job is complete without start"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATUSES)
def test_new_status_is_validated(change, expected):
    assert status_errors(*change) == expected


INDEXES = [
    pytest.param(({"completedIndexes": "0,2-3", "failedIndexes": "1"}, LIMITED), [], id="indexes"),
    pytest.param(({"completedIndexes": "0"},),
        [('completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
          "completion mode")], id="completed indexes without indexes"),
    pytest.param(({"failedIndexes": "0"}, INDEXED),
        [('failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is '
          "null")], id="failed indexes without limit"),
    pytest.param(({"completedIndexes": "5", "failedIndexes": "6"}, LIMITED),
        ['completedIndexes: Invalid value: "5": error parsing completedIndexes: too large index: "5"',
         'failedIndexes: Invalid value: "6": error parsing failedIndexes: too large index: "6"'], id="index too large"),
    pytest.param(({"completedIndexes": "a", "failedIndexes": "b-c"}, LIMITED),
        [('completedIndexes: Invalid value: "a": error parsing completedIndexes: cannot convert string to '
          'integer for index: "a"'),
         ('failedIndexes: Invalid value: "b-c": error parsing failedIndexes: cannot convert string to integer '
          'for index: "b"')], id="indexes that are no numbers"),
    pytest.param(({"completedIndexes": "0-2", "failedIndexes": "2-3"}, LIMITED),
        ['failedIndexes: Invalid value: "2-3": failedIndexes and completedIndexes overlap at index: 2'],
        id="indexes that overlap"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), INDEXES)
def test_indexes_in_status_are_validated(change, expected):
    assert status_errors(*change) == expected


CHANGES = [
    pytest.param({"succeeded": 1, "failed": 1}, {"succeeded": 2, "failed": 2}, [], id="counters increase"),
    pytest.param({"succeeded": 1, "failed": 1}, {"succeeded": 0, "failed": 0},
        ["failed: Invalid value: 0: cannot decrease the failed counter",
         "succeeded: Invalid value: 0: cannot decrease the succeeded counter"], id="counters decrease"),
    pytest.param(COMPLETE, {"startTime": START},
        ["conditions: Invalid value: cannot disable the terminal Complete=True condition",
         "conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"], id="completion is undone"),
    pytest.param(FAILED, {"startTime": START},
        ["conditions: Invalid value: cannot disable the terminal Failed=True condition",
         "conditions: Invalid value: cannot disable the terminal FailureTarget=True condition"], id="failure is undone"),
    pytest.param(conditions("SuccessCriteriaMet"), {},
        ["conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"], id="success is undone"),
    pytest.param({**COMPLETE, **conditions("Complete")}, COMPLETE,
        [("conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true "
          "conditions")], id="success after completion"),
    pytest.param({"startTime": START}, {"startTime": END},
        ['startTime: Invalid value: "2030-01-01T00:01:00Z": field is immutable for unsuspended job once set'],
        id="start changes"),
    pytest.param({"startTime": START}, {},
        ["startTime: Invalid value: null: field is immutable for unsuspended job once set"], id="start is removed"),
    pytest.param({"startTime": START, **conditions("Suspended")}, {"startTime": END, "conditions": [{"type": "Suspended", "status": "False"}]},
        [], id="start changes when a Job is resumed"),
    pytest.param(COMPLETE, {**COMPLETE, "completionTime": "2030-01-01T00:02:00Z"},
        ['completionTime: Invalid value: "2030-01-01T00:02:00Z": field is immutable'], id="end changes"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_status_are_validated(old, new, expected):
    assert status_errors(new, None, old) == expected


def test_successes_of_elastic_job_may_decrease():
    elastic = {**INDEXED, "completions": 2}
    assert status_errors({"succeeded": 1}, elastic, {"succeeded": 2}) == []


def test_start_of_suspended_job_may_change():
    assert status_errors({"startTime": END}, {"suspend": True}, {"startTime": START}) == []

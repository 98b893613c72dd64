"""Indexed Job: pod fields, per-index backoff limits, success policy and pod failure policy."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.controller_manager.controllers.job import index_ranges
from tests.support.controllers.jobs import JobHarness, index_of


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        ("", 9, ()),
        ("0,2-4,7", 9, ((0, 0), (2, 4), (7, 7))),
        ("0,1", 9, ((0, 1),)),
        ("2-9", 5, ((2, 4),)),
        ("7", 5, ()),
        ("x,1,2-y,4", 5, ((1, 1), (4, 4))),
    ],
)
def test_index_intervals_are_parsed(text, completions, expected):
    assert index_ranges.parse(text, completions) == expected


@pytest.mark.parametrize("indexes", [{0}, {0, 1}, {0, 1, 2}, {0, 2, 3, 5, 6, 7}, set()])
def test_index_intervals_round_trip(indexes):
    written = index_ranges.text_of(index_ranges.with_indexes(index_ranges.NONE, indexes))
    read = index_ranges.parse(written, 10)
    assert {index for index in range(10) if index_ranges.contains(read, index)} == indexes
    assert index_ranges.total(read) == len(indexes)
    assert {*index_ranges.first_missing(read, 10, 10)} == {*range(10)} - indexes


def test_two_neighbouring_indexes_are_listed_and_three_are_a_range():
    assert index_ranges.text_of(((0, 1), (3, 5))) == "0,1,3-5"


def test_indexed_pod_has_index_label_and_hostname():
    jobs = JobHarness(completionMode="Indexed", parallelism=2, completions=2)
    jobs.sync()
    pod = jobs.active[1]
    assert meta.labels(pod)["batch.kubernetes.io/job-completion-index"] == "1"
    assert index_of(pod) == 1
    assert pod["spec"]["hostname"] == "j-1"
    assert meta.generate_name(pod) == "j-1-"
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
    assert pod["spec"]["containers"][0]["env"] == [variable]


def test_index_beyond_its_backoff_limit_fails_alone():
    jobs = JobHarness(
        completionMode="Indexed", parallelism=2, completions=2, backoffLimitPerIndex=1, backoffLimit=2**31 - 1
    )
    jobs.sync()
    assert _failures(jobs.active[0]) == "0"
    jobs.end_index(0, 1)
    jobs.sync()
    assert len(jobs.tracked) == 2, "the failed pod is kept until its successor is there"
    jobs.pass_time(10)
    jobs.sync()
    (successor,) = [pod for pod in jobs.active if index_of(pod) == 0]
    assert _failures(successor) == "1"
    jobs.sync()
    assert (len(jobs.tracked), jobs.status["failed"]) == (2, 1)
    jobs.end_index(0, 1)
    jobs.sync()
    assert jobs.status["failedIndexes"] == "0"
    jobs.end_index(1)
    jobs.settle()
    assert jobs.conditions[-1] == ("Failed", "True", "FailedIndexes")
    assert jobs.status["completedIndexes"] == "1"


def _failures(pod):
    return meta.annotations(pod)["batch.kubernetes.io/job-index-failure-count"]


def test_too_many_failed_indexes_fail_job():
    jobs = JobHarness(
        completionMode="Indexed",
        parallelism=3,
        completions=3,
        backoffLimitPerIndex=0,
        backoffLimit=2**31 - 1,
        maxFailedIndexes=0,
    )
    jobs.sync()
    jobs.end_index(1, 1)
    jobs.settle()
    assert jobs.conditions[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")


@pytest.mark.parametrize(
    ("rule", "succeeding"),
    [
        ({"succeededIndexes": "0-1"}, (0, 1)),
        ({"succeededCount": 2}, (1, 2)),
        ({"succeededIndexes": "0,2", "succeededCount": 1}, (2,)),
    ],
)
def test_success_policy_completes_job_early(rule, succeeding):
    jobs = JobHarness(completionMode="Indexed", parallelism=3, completions=3, successPolicy={"rules": [rule]})
    jobs.sync()
    for index in succeeding[:-1]:
        jobs.end_index(index)
        jobs.sync()
        assert jobs.conditions == []
    jobs.end_index(succeeding[-1])
    jobs.settle()
    assert jobs.conditions == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    assert jobs.status["conditions"][0]["message"] == "Matched rules at index 0"
    assert jobs.status.get("failed", 0) == 0, "those that are not needed any more have not failed"


@pytest.mark.parametrize(
    ("action", "failed", "reason"),
    [("Ignore", 0, ""), ("Count", 1, ""), ("FailJob", 1, "PodFailurePolicy")],
)
def test_pod_failure_policy_matches_exit_codes(action, failed, reason):
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
    jobs = JobHarness(podFailurePolicy={"rules": [rule]}, podReplacementPolicy="Failed")
    jobs.sync()
    name = meta.name(jobs.active[0])
    jobs.end(jobs.active[0], 42)
    jobs.settle()
    assert jobs.status.get("failed", 0) == failed
    assert [it["reason"] for it in jobs.status.get("conditions") or ()] == [reason] * 2 * bool(reason)
    if reason:
        message = (
            f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
        )
        assert jobs.status["conditions"][0]["message"] == message


def test_pod_failure_policy_matches_pod_conditions():
    pattern = {"type": "DisruptionTarget", "status": "True"}
    jobs = JobHarness(
        podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [pattern]}]},
        podReplacementPolicy="Failed",
        backoffLimit=0,
    )
    jobs.sync()
    jobs.end(jobs.active[0], 137, conditions=[pattern])
    jobs.sync()
    assert jobs.conditions == []


def test_duplicate_index_keeps_one_pod():
    jobs = JobHarness(completionMode="Indexed", parallelism=2, completions=2)
    jobs.sync()
    twin = meta.with_metadata(jobs.active[0], name="twin", uid="uid-99")
    jobs.add(PODS, twin)
    jobs.settle()
    assert sorted(map(index_of, jobs.active)) == [0, 1]

"""The fields of Jobs and of their pods, and which ended pods are not counted yet."""

import pytest

from mockube.client.podview import PodView
from mockube.controller_manager.controllers.job import state
from mockube.controller_manager.controllers.job.backoff import Failures

TRACKED = ["batch.kubernetes.io/job-tracking"]
INDEX = "batch.kubernetes.io/job-completion-index"
COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
ENDING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


def job(status=None, **spec):
    return {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"completions": 3, **spec},
        "status": status or {},
    }


def pod(name="p", phase="Running", *, index=None, failures=None, tracked=True, finished="", **metadata):
    annotations = {INDEX: index} if index is not None else {}
    annotations |= {COUNT: failures} if failures is not None else {}
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    containers = [{"name": "c", "state": {"terminated": {"finishedAt": finished}}}] if finished else []
    return PodView.of(
        {
            "metadata": {**named, "finalizers": TRACKED if tracked else [], **metadata},
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": phase, "containerStatuses": containers},
        }
    )


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], False),
        ([{"type": "Complete", "status": "True"}], True),
        ([{"type": "Failed", "status": "True"}], True),
        ([{"type": "Complete", "status": "False"}], False),
        ([{"type": "Suspended", "status": "True"}], False),
    ],
)
def test_job_is_finished_by_its_conditions(conditions, expected):
    assert state.is_finished(job({"conditions": conditions})) is expected


@pytest.mark.parametrize(
    ("function", "spec", "expected"),
    [
        (state.is_managed_elsewhere, {}, False),
        (state.is_managed_elsewhere, {"managedBy": "kubernetes.io/job-controller"}, False),
        (state.is_managed_elsewhere, {"managedBy": "example.com/x"}, True),
        (state.is_suspended, {}, False),
        (state.is_suspended, {"suspend": True}, True),
        (state.is_indexed, {"completionMode": "Indexed"}, True),
        (state.is_indexed, {"completionMode": "NonIndexed"}, False),
        (state.is_indexed, {}, False),
        (state.has_index_backoff_limit, {"backoffLimitPerIndex": 0}, True),
        (state.has_index_backoff_limit, {}, False),
        (state.replaces_failed_only, {}, False),
        (state.replaces_failed_only, {"podReplacementPolicy": "Failed"}, True),
        (state.replaces_failed_only, {"podReplacementPolicy": "TerminatingOrFailed"}, False),
        (state.replaces_failed_only, {"podFailurePolicy": {}}, True),
    ],
)
def test_field_of_a_job(function, spec, expected):
    assert function(job(**spec)) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("0", 0), ("7", 7), ("-1", None), ("x", None), ("", None)]
)
def test_index_of_a_pod_is_a_number(text, expected):
    assert state.index_of(pod(index=text)) == expected
    assert state.indexes_of([pod(index=text)]) == ({expected} if expected is not None else set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, 0), ("3", 3), ("x", 0), ("-1", 0), ("2147483647", 2147483647), ("2147483648", 0)],
)
def test_failures_of_an_index_are_counted_within_limits(text, expected):
    assert state.failure_count(pod(failures=text)) == expected
    both = pod(failures=text)
    both.object["metadata"]["annotations"][IGNORED] = "2"
    assert state.all_failures(both) == expected + 2


@pytest.mark.parametrize(
    ("subject", "spec", "expected"),
    [
        (pod(phase="Failed"), {}, True),
        (pod(), {}, False),
        (pod(**ENDING), {}, True),
        (pod(phase="Succeeded", **ENDING), {}, False),
        (pod(**ENDING), {"podReplacementPolicy": "Failed"}, False),
        (pod(phase="Failed"), {"podReplacementPolicy": "Failed"}, True),
    ],
)
def test_deleted_pod_is_failed_unless_only_failed_ones_are_replaced(subject, spec, expected):
    assert state.is_failed(job(**spec), subject) is expected


def counts_of(subject, *pods):
    found = state.state_of(subject, pods, Failures())
    return found.succeeded, found.failed, found.terminating, len(found.active)


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        ({}, [], (0, 0, 0, 0)),
        ({"succeeded": 2, "failed": 1}, [], (2, 1, 0, 0)),
        ({}, [pod(phase="Succeeded")], (1, 0, 0, 0)),
        ({}, [pod(phase="Failed")], (0, 1, 0, 0)),
        ({}, [pod(phase="Succeeded", tracked=False), pod("q", "Failed", tracked=False)], (0, 0, 0, 0)),
        ({}, [pod()], (0, 0, 0, 1)),
        ({}, [pod(**ENDING)], (0, 1, 1, 0)),
        ({}, [pod(phase="Failed", **ENDING)], (0, 1, 0, 0)),
        ({"uncountedTerminatedPods": {"succeeded": ["uid-p"]}}, [pod(phase="Succeeded")], (1, 0, 0, 0)),
        ({"uncountedTerminatedPods": {"failed": ["uid-p"]}}, [pod(phase="Failed")], (0, 1, 0, 0)),
        (
            {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["uid-q"]}},
            [pod(phase="Succeeded")],
            (3, 0, 0, 0),
        ),
    ],
)
def test_ended_pods_are_counted_once(status, pods, expected):
    assert counts_of(job(status), *pods) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod(phase="Succeeded", index="0"), pod("q", "Succeeded", index="0")], 1),
        ([pod(phase="Succeeded", index="0"), pod("q", "Succeeded", index="2")], 2),
        ([pod(phase="Succeeded", index="3")], 0),
        ([pod(phase="Succeeded")], 0),
    ],
)
def test_indexed_job_counts_indexes_below_its_completions(pods, expected):
    assert counts_of(job(completionMode="Indexed"), *pods)[0] == expected


def replaceable(*pods, status=None, **spec):
    subject = job(status, completionMode="Indexed", backoffLimitPerIndex=9, **spec)
    found = state.state_of(subject, pods, Failures())
    return {index: each.key.name for index, each in found.replaceable.items()}


LATE, EARLY = "2030-01-01T00:00:09Z", "2030-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod(phase="Failed", index="0")], {0: "p"}),
        ([pod(phase="Failed")], {}),
        ([pod(phase="Failed", index="3")], {}),
        ([pod(phase="Failed", index="0", tracked=False)], {}),
        ([pod(phase="Failed", index="0"), pod("q", index="0")], {}),
        ([pod(phase="Failed", index="0"), pod("q", "Succeeded", index="0")], {}),
        ([pod(index="0")], {}),
        (
            [
                pod(phase="Failed", index="0", failures="1", finished=LATE),
                pod("q", "Failed", index="0", finished=EARLY),
            ],
            {0: "p"},
        ),
        (
            [
                pod(phase="Failed", index="0", finished=EARLY),
                pod("q", "Failed", index="0", failures="1", finished=LATE),
            ],
            {0: "q"},
        ),
        (
            [
                pod(phase="Failed", index="0", finished=LATE),
                pod("q", "Failed", index="0", failures="1", finished=EARLY),
            ],
            {0: "p"},
        ),
    ],
)
def test_last_failed_pod_of_an_index_is_replaced(pods, expected):
    assert replaceable(*pods) == expected


def test_only_jobs_with_a_limit_for_each_index_replace_by_index():
    failed = pod(phase="Failed", index="0")
    assert state.state_of(job(completionMode="Indexed"), [failed], Failures()).failed_indexes is None
    assert state.state_of(job(backoffLimitPerIndex=1), [failed], Failures()).failed_indexes is None
    assert state.state_of(job(completionMode="Indexed"), [failed], Failures()).replaceable == {}


@pytest.mark.parametrize(("index", "expected"), [("0", True), ("2", True), ("3", False), (None, False)])
def test_index_of_a_pod_is_below_the_completions(index, expected):
    found = state.state_of(job(), [], Failures())
    assert found.has_index(pod(index=index)) is expected

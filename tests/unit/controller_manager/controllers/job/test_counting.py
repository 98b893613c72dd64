"""Job: the number of pods, counting of finished pods, and completion or failure."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import JOBS, PODS
from tests.support.controllers.jobs import JobHarness, index_of, job

DONE = [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]
FINISH = [("update", "jobs"), ("finalize", "pods"), ("update", "jobs")]


def failed_conditions(reason):
    return [("FailureTarget", "True", reason), ("Failed", "True", reason)]


def test_job_completes_with_its_pod():
    jobs = JobHarness()
    assert jobs.sync() == [("create", "pods"), ("update", "jobs")]
    assert jobs.status == {
        "startTime": jobs.status["startTime"],
        "active": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert jobs.sync() == []
    jobs.end(jobs.active[0])
    assert jobs.sync() == FINISH
    assert jobs.counts == {"active": 0, "succeeded": 1, "failed": 0}
    assert jobs.conditions == DONE
    assert jobs.status["completionTime"]
    assert jobs.events[-1] == ("Normal", "Completed", "Job completed")
    assert jobs.sync() == []


@pytest.mark.parametrize(
    ("spec", "active"),
    [
        pytest.param({"parallelism": 3, "completions": 2}, 2, id="no more than are to succeed"),
        pytest.param({"parallelism": 2, "completions": 5}, 2, id="limited by parallelism"),
        pytest.param({"parallelism": 3, "completions": None}, 3, id="a queue of work"),
        pytest.param({"parallelism": 0, "completions": 5}, 0, id="parallelism 0"),
        pytest.param({"parallelism": 2000, "completions": 2000}, 500, id="a burst"),
    ],
)
def test_parallelism_determines_active_pods(spec, active):
    jobs = JobHarness(**spec)
    jobs.sync()
    assert len(jobs.active) == active
    assert jobs.status.get("active", 0) == active


def test_ready_pods_are_counted():
    jobs = JobHarness(parallelism=2, completions=2)
    jobs.sync()
    jobs.run(jobs.active[0])
    jobs.sync()
    assert jobs.status["ready"] == 1


def test_work_queue_job_completes_after_one_success():
    jobs = JobHarness(parallelism=3, completions=None)
    jobs.sync()
    one, other, last = jobs.active
    jobs.end(one)
    jobs.end(other, 1)
    jobs.sync()
    assert (len(jobs.active), jobs.conditions) == (1, [])
    jobs.end(last)
    jobs.sync()
    assert jobs.counts == {"active": 0, "succeeded": 2, "failed": 1}
    assert jobs.conditions == DONE


def test_failed_pod_is_replaced_with_exponential_backoff():
    jobs = JobHarness()
    jobs.sync()
    for delay in (10, 20, 40):
        jobs.end(jobs.active[0], 1)
        jobs.sync()
        assert jobs.active == []
        jobs.pass_time(delay - 1)
        jobs.sync()
        assert jobs.active == []
        jobs.pass_time(1)
        jobs.sync()
        assert len(jobs.active) == 1
    assert jobs.counts == {"active": 1, "succeeded": 0, "failed": 3}


def test_success_resets_backoff():
    jobs = JobHarness(parallelism=2, completions=3)
    jobs.sync()
    one, other = jobs.active
    jobs.end(one, 1, ago=5)
    jobs.end(other)
    jobs.sync()
    assert len(jobs.active) == 2


def test_deleting_pod_counts_as_failed_after_its_end():
    jobs = JobHarness()
    jobs.sync()
    jobs.delete(jobs.active[0])
    jobs.sync()
    jobs.collect()
    jobs.sync()
    assert jobs.pods == []
    assert jobs.status["failed"] == 1
    jobs.pass_time(10)
    jobs.sync()
    assert len(jobs.active) == 1


def test_deleting_pod_is_replaced_after_its_end_with_failed_policy():
    jobs = JobHarness(podReplacementPolicy="Failed")
    jobs.sync()
    jobs.delete(jobs.active[0])
    jobs.sync()
    assert (jobs.status["terminating"], jobs.status.get("failed", 0)) == (1, 0)
    assert len(jobs.pods) == 1
    jobs.end(jobs.pods[0], 1, ago=11)
    jobs.sync()
    assert jobs.counts == {"active": 1, "succeeded": 0, "failed": 1}


def test_failures_beyond_backoff_limit_fail_job():
    jobs = JobHarness(backoffLimit=0, parallelism=2, completions=2)
    jobs.sync()
    jobs.end(jobs.active[0], 1)
    assert jobs.sync() == [
        ("delete", "pods"),
        ("update", "jobs"),
        ("finalize", "pods"),
        ("finalize", "pods"),
        ("update", "jobs"),
    ]
    assert jobs.conditions == failed_conditions("BackoffLimitExceeded")[:1]
    assert jobs.status["terminating"] == 1
    jobs.collect()
    jobs.sync()
    assert jobs.conditions == failed_conditions("BackoffLimitExceeded")
    assert jobs.counts == {"active": 0, "succeeded": 0, "failed": 2}
    message = "Job has reached the specified backoff limit"
    assert jobs.events[-1] == ("Warning", "BackoffLimitExceeded", message)


def test_container_restarts_count_towards_backoff_limit():
    template = {**job()["spec"]["template"], "spec": {"restartPolicy": "OnFailure", "containers": []}}
    jobs = JobHarness(backoffLimit=2, template=template)
    jobs.sync()
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 2}]}
    jobs.put(PODS, {**jobs.active[0], "status": status})
    jobs.settle()
    assert jobs.conditions == failed_conditions("BackoffLimitExceeded")


def test_job_beyond_active_deadline_fails():
    jobs = JobHarness(activeDeadlineSeconds=30)
    jobs.sync()
    assert jobs.plan(("default", "j")).requeue_after.total_seconds() == pytest.approx(30, abs=1)
    jobs.pass_time(30)
    jobs.settle()
    assert jobs.conditions == failed_conditions("DeadlineExceeded")


def test_suspended_job_has_no_pods_and_no_start_time():
    jobs = JobHarness(suspend=True)
    jobs.sync()
    assert jobs.conditions == [("Suspended", "True", "JobSuspended")]
    assert "startTime" not in jobs.status
    jobs.set(suspend=False)
    jobs.sync()
    assert jobs.conditions == [("Suspended", "False", "JobResumed")]
    assert len(jobs.active) == 1
    jobs.set(suspend=True)
    jobs.sync()
    assert jobs.counts == {"active": 0, "succeeded": 0, "failed": 0}
    assert "startTime" not in jobs.status
    jobs.settle()
    assert jobs.pods == []
    assert jobs.status.get("failed", 0) == 0
    assert [reason for _, reason, _ in jobs.events if "ed" in reason[-2:]] == [
        "Suspended",
        "Resumed",
        "Suspended",
    ]


def test_reduced_parallelism_deletes_uncounted_pods():
    jobs = JobHarness(parallelism=4, completions=4)
    jobs.sync()
    jobs.run(jobs.active[0])
    ready = meta.name(jobs.active[0])
    jobs.set(parallelism=1)
    jobs.settle()
    assert [meta.name(pod) for pod in jobs.pods] == [ready]
    assert jobs.counts == {"active": 1, "succeeded": 0, "failed": 0}


def test_job_managed_by_other_controller_is_ignored():
    jobs = JobHarness(managedBy="example.com/queue")
    assert jobs.sync() == []


def test_too_many_successes_record_event():
    jobs = JobHarness(parallelism=2, completions=2)
    jobs.sync()
    for pod in jobs.active:
        jobs.end(pod)
    jobs.set(completions=1)
    jobs.sync()
    assert [reason for _, reason, _ in jobs.events][-2:] == ["TooManySucceededPods", "Completed"]


def test_orphan_is_adopted_with_finalizer_and_released_without():
    jobs = JobHarness()
    labels = {"job-name": "j"}
    jobs.add(PODS, {"metadata": {"name": "stray", "namespace": "default", "labels": labels}, "spec": {}})
    assert jobs.sync() == [("adopt", "pods")]
    assert len(jobs.tracked) == 1
    (action,) = _relabelled(jobs).plan(("default", "j")).actions
    assert action.finalizers == ("batch.kubernetes.io/job-tracking",)


def _relabelled(jobs):
    jobs.put(PODS, meta.with_labels(jobs.pods[0], {"job-name": "other"}))
    return jobs


def test_restart_during_counting_counts_each_pod_once():
    """The restart comes before or after each step: written pod names, removed finalizers, and both."""
    for writes in range(4):
        jobs = JobHarness(parallelism=3, completions=3)
        jobs.sync()
        for pod, code in zip(jobs.active, (0, 1, 0), strict=True):
            jobs.end(pod, code)
        _begin(jobs, writes)
        jobs.memories.clear()
        jobs.settle()
        assert jobs.counts["succeeded"] == 2
        assert jobs.counts["failed"] == 1


def _begin(jobs, plans):
    """Execute only this many of the consecutive plans."""
    plan = jobs.plan(("default", "j"))
    for _ in range(plans):
        if plan is None:
            return
        plan = jobs.execute_one(plan)


def test_pods_of_deleted_job_lose_finalizer():
    jobs = JobHarness(parallelism=2, completions=2)
    jobs.sync()
    jobs.release_orphans()
    assert len(jobs.tracked) == 2
    jobs.remove(JOBS, "j")
    jobs.release_orphans()
    assert jobs.tracked == []


def test_indexes_are_assigned_from_lowest():
    jobs = JobHarness(completionMode="Indexed", parallelism=2, completions=4)
    jobs.sync()
    assert [*map(index_of, jobs.active)] == [0, 1]
    jobs.end_index(0)
    jobs.sync()
    assert sorted(map(index_of, jobs.active)) == [1, 2]
    assert jobs.status["completedIndexes"] == "0"

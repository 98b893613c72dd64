"""CronJob: when Jobs are created, the concurrency policy, and the history of finished Jobs."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import CRON_JOBS, JOBS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.cronjob.controller import CRON_JOB
from tests.support.controllers.fake_api_server import FakeApiServer

KEY = Key("default", "c")


class CronJobHarness(FakeApiServer):
    def __init__(self, **spec):
        super().__init__(CRON_JOB, SteppedClock())
        defaults = {
            "schedule": "*/5 * * * *",
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {}}},
        }
        created = format_time(self.clock.now())
        metadata = {"name": "c", "namespace": "default", "creationTimestamp": created}
        self.add(CRON_JOBS, {"metadata": metadata, "spec": {**defaults, **spec}, "status": {}})

    def sync(self):
        """Reconcile once; return the writes as (verb, plural)."""
        writes, self.error = self.reconcile(KEY)
        return [(verb, resource.plural) for verb, resource, _ in writes]

    def pass_time(self, **span):
        self.clock.advance(timedelta(**span).total_seconds())

    def end(self, job, kind="Complete"):
        time = format_time(self.clock.now())
        condition = {"type": kind, "status": "True"}
        self.put(
            JOBS, {**job, "status": {"conditions": [condition], "completionTime": time, "startTime": time}}
        )

    @property
    def cron_job(self):
        return self.get(CRON_JOBS, "c")

    @property
    def status(self):
        return self.cron_job.get("status") or {}

    @property
    def reasons(self):
        return [reason for _, reason, _ in self.events]


def test_job_is_created_at_scheduled_time():
    crons = CronJobHarness()
    assert crons.sync() == []
    assert crons.plan(KEY).requeue_after == timedelta(minutes=5, milliseconds=100)
    crons.pass_time(minutes=5)
    assert crons.sync() == [("create", "jobs"), ("update", "cronjobs")]
    (job,) = crons.all(JOBS)
    due = datetime(2030, 1, 1, 0, 5, tzinfo=UTC)
    assert meta.name(job) == f"c-{int(due.timestamp()) // 60}"
    assert meta.labels(job) == {"a": "b"}
    stamp = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2030-01-01T00:05:00Z"}
    assert meta.annotations(job) == stamp
    assert meta.is_controlled_by(job, crons.cron_job)
    assert crons.status["lastScheduleTime"] == "2030-01-01T00:05:00Z"
    assert [reference["name"] for reference in crons.status["active"]] == [meta.name(job)]
    assert crons.sync() == []


def test_scheduled_time_annotation_has_time_zone():
    crons = CronJobHarness(schedule="30 9 * * *", timeZone="Asia/Kathmandu")
    crons.pass_time(hours=4)
    crons.sync()
    (job,) = crons.all(JOBS)
    assert [*meta.annotations(job).values()] == ["2030-01-01T09:30:00+05:45"]


def test_finished_job_updates_status():
    crons = CronJobHarness()
    crons.pass_time(minutes=5)
    crons.sync()
    crons.end(crons.all(JOBS)[0])
    assert crons.sync() == [("update", "cronjobs")]
    assert "active" not in crons.status
    assert crons.status["lastSuccessfulTime"] == "2030-01-01T00:05:00Z"
    assert crons.reasons == ["SuccessfulCreate", "SawCompletedJob"]


@pytest.mark.parametrize(
    ("policy", "jobs", "active", "reason"),
    [
        ("Allow", 2, 2, "SuccessfulCreate"),
        ("Forbid", 1, 1, "JobAlreadyActive"),
        ("Replace", 1, 1, "SuccessfulCreate"),
    ],
)
def test_concurrency_policy_applies_to_running_job(policy, jobs, active, reason):
    crons = CronJobHarness(concurrencyPolicy=policy)
    crons.pass_time(minutes=5)
    crons.sync()
    crons.pass_time(minutes=5)
    crons.sync()
    assert (len(crons.all(JOBS)), len(crons.status["active"])) == (jobs, active)
    assert crons.reasons[-1] == reason
    assert ("SuccessfulDelete" in crons.reasons) == (policy == "Replace")


def test_only_latest_missed_start_is_made_up():
    crons = CronJobHarness()
    crons.pass_time(hours=3, minutes=2)
    crons.sync()
    assert crons.status["lastScheduleTime"] == "2030-01-01T03:00:00Z"
    assert "TooManyMissedTimes" not in crons.reasons


def test_too_many_missed_starts_record_event():
    crons = CronJobHarness(schedule="* * * * *")
    crons.pass_time(hours=3)
    crons.sync()
    assert crons.reasons == ["TooManyMissedTimes", "SuccessfulCreate"]


@pytest.mark.parametrize(("deadline", "late", "jobs"), [(30, 20, 1), (30, 40, 0), (None, 200, 1)])
def test_start_beyond_starting_deadline_is_skipped(deadline, late, jobs):
    crons = CronJobHarness(startingDeadlineSeconds=deadline)
    crons.pass_time(minutes=5, seconds=late)
    crons.sync()
    assert len(crons.all(JOBS)) == jobs


def test_suspended_cron_job_creates_no_jobs():
    crons = CronJobHarness(suspend=True)
    crons.pass_time(hours=1)
    assert crons.sync() == []
    assert crons.plan(KEY).requeue_after is None


def test_changed_schedule_starts_at_next_time():
    crons = CronJobHarness(schedule="0 0 1 1 *")
    crons.sync()
    crons.pass_time(minutes=10, seconds=30)
    crons.respecify(CRON_JOBS, "c", ("schedule",), "* * * * *")
    assert crons.plan(KEY).requeue_after == timedelta(seconds=30, milliseconds=100)
    assert crons.sync() == []
    crons.pass_time(seconds=31)
    assert crons.sync() == [("create", "jobs"), ("update", "cronjobs")]


def test_jobs_beyond_history_limit_are_deleted():
    crons = CronJobHarness(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    for kind in ("Complete", "Failed", "Complete", "Complete"):
        crons.pass_time(minutes=5)
        crons.sync()
        crons.end(next(job for job in crons.all(JOBS) if not job.get("status")), kind)
        crons.sync()
    crons.sync()
    found = sorted(meta.annotations(job).popitem()[1][14:16] for job in crons.all(JOBS))
    assert found == ["15", "20"]


def job_created_before_restart(minor):
    crons = CronJobHarness()
    crons.gates = FeatureGates(minor)
    crons.pass_time(minutes=5)
    plan = crons.execute_one(crons.plan(KEY), KEY)
    crons.execute_one(plan, KEY)
    assert crons.status == {}
    return crons


def test_job_created_before_restart_is_added_to_active():
    crons = job_created_before_restart("1.37")
    assert crons.sync() == [("update", "cronjobs")]
    assert len(crons.status["active"]) == 1
    assert len(crons.all(JOBS)) == 1


def test_older_controller_does_not_find_job_created_before_restart():
    crons = job_created_before_restart("1.36")
    assert crons.sync() == []
    assert crons.status == {}
    assert len(crons.all(JOBS)) == 1
    crons.pass_time(minutes=5)
    assert crons.sync() == [("create", "jobs"), ("update", "cronjobs")]


@pytest.mark.parametrize(("minor", "reasons"), [("1.37", []), ("1.36", ["UnexpectedJob"])])
def test_job_of_earlier_cron_job_is_unexpected_in_older_minors(minor, reasons):
    crons = CronJobHarness()
    crons.gates = FeatureGates(minor)
    earlier = meta.with_metadata(crons.cron_job, uid="earlier")
    owners = [meta.controller_reference(earlier)]
    crons.add(JOBS, {"metadata": {"name": "c-1", "namespace": "default", "ownerReferences": owners}})
    crons.sync()
    assert crons.reasons == reasons


def test_missing_job_is_removed_from_active():
    crons = CronJobHarness()
    crons.pass_time(minutes=5)
    crons.sync()
    crons.remove(JOBS, meta.name(crons.all(JOBS)[0]))
    crons.sync()
    assert "active" not in crons.status
    assert crons.reasons[-1] == "MissingJob"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"schedule": "nonsense"}, "UnparseableSchedule"),
        ({"timeZone": "No/Where"}, "UnknownTimeZone"),
        ({"schedule": "TZ=UTC * * * * *"}, "UnsupportedSchedule"),
    ],
)
def test_invalid_schedule_records_event(spec, reason):
    crons = CronJobHarness(**spec)
    crons.sync()
    assert crons.reasons == [reason]
    assert crons.all(JOBS) == []

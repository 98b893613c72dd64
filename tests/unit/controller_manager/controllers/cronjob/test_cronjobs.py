"""CronJob: when Jobs are created, the concurrency policy, and the history of finished Jobs."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from mockube.apimachinery import cron, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import CRON_JOBS, JOBS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.control.actions import Delete
from mockube.controller_manager.controllers.cronjob import controller, start_times
from mockube.controller_manager.controllers.cronjob.controller import CRON_JOB
from mockube.controller_manager.controllers.cronjob.jobs import (
    CronJobStatus,
    jobs_beyond_history_limit,
    observe_jobs,
)
from tests.support.controllers.fake_api_server import FakeApiServer
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.metric_samples import sample_value

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


NOW = datetime(2030, 1, 1, 0, 30, tzinfo=UTC)


def cron_job(status=(), *, created="2030-01-01T00:00:00Z", deleted=False, **spec):
    metadata = {"name": "c", "namespace": "default", "uid": "uid-c", "creationTimestamp": created}
    if deleted:
        metadata["deletionTimestamp"] = created
    fields = {"schedule": "*/5 * * * *", "jobTemplate": {}, **spec}
    return {"metadata": metadata, "spec": fields, "status": dict(status)}


@pytest.mark.parametrize(
    ("tree", "within", "latest", "number", "since"),
    [
        (cron_job(), True, 30, 6, 0),
        (cron_job({"lastScheduleTime": "2030-01-01T00:25:00Z"}), True, 30, 0, 25),
        (cron_job({"lastScheduleTime": "2030-01-01T00:30:00Z"}), True, None, 0, 30),
        (cron_job(startingDeadlineSeconds=60), True, 30, 0, 29),
        (cron_job(startingDeadlineSeconds=60), False, 30, 6, 0),
        (cron_job(startingDeadlineSeconds=0), True, None, 0, 30),
        (cron_job({"lastScheduleTime": "2030-01-01T00:25:00Z"}, startingDeadlineSeconds=900), True, 30, 0, 25),
        (cron_job(schedule="0 0 1 1 *"), True, None, 0, 0),
        (cron_job(created=None), True, None, 0, 30),
    ],
)  # fmt: skip
def test_starts_that_were_missed(tree, within, latest, number, since):
    found = start_times.missed_starts(tree, cron.parse(tree["spec"]["schedule"]), NOW, within_deadline=within)
    minutes = [
        None if time is None else int((time - NOW).total_seconds()) // 60 + 30
        for time in (found.latest, found.since)
    ]
    assert (*minutes, found.number) == (latest, since, number)


@pytest.mark.parametrize(
    ("tree", "seconds"),
    [
        (cron_job(), 300.1),
        (cron_job({"lastScheduleTime": "2030-01-01T00:30:00Z"}), 300.1),
        (cron_job({"lastScheduleTime": "2030-01-01T00:20:00Z"}), 300.1),
        (cron_job(schedule="31 0 * * *"), 60.1),
        (cron_job(schedule="TZ=UTC 31 0 * * *", timeZone="Asia/Kathmandu"), 60.1),
        (cron_job(schedule="16 6 * * *", timeZone="Asia/Kathmandu"), 60.1),
        (cron_job(schedule="0 0 1 6 *"), timedelta(days=30).total_seconds()),
        (cron_job(schedule="0 0 31 2 *"), timedelta(days=30).total_seconds()),
        (cron_job(suspend=True), None),
        (cron_job(deleted=True), None),
        (cron_job(timeZone="No/Where"), None),
        (cron_job(schedule="nonsense"), None),
    ],
)
def test_time_until_the_next_start(tree, seconds):
    found = controller._until_next_start(tree, NOW)
    assert (None if found is None else found.total_seconds()) == seconds


def job(name, end="", *, done=None, uid=None, start=None, status="True"):
    conditions = [{"type": end, "status": status}] if end else []
    times = {"completionTime": done, "startTime": start}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "status": {"conditions": conditions, **{key: time for key, time in times.items() if time}},
    }


def reference(name):
    return {"kind": "Job", "namespace": "default", "name": name, "uid": f"uid-{name}"}


EARLY, LATE = "2030-01-01T00:01:00Z", "2030-01-01T00:02:00Z"


@pytest.mark.parametrize(
    ("status", "found", "active", "success", "reasons"),
    [
        ({}, [], [], "", []),
        ({}, [job("a")], [], "", ["UnexpectedJob"]),
        ({}, [job("a", "Complete", done=EARLY)], [], EARLY, []),
        ({"active": [reference("a")]}, [job("a")], ["a"], "", []),
        ({"active": [reference("a")]}, [job("a", "Complete", status="False")], ["a"], "", []),
        ({"active": [reference("a")]}, [job("a", "Complete")], [], "", ["SawCompletedJob"]),
        ({"active": [reference("a")]}, [job("a", "Failed", done=EARLY)], [], "", ["SawCompletedJob"]),
        ({"active": [reference("a"), reference("b")]}, [job("b")], ["b"], "", ["MissingJob"]),
        ({"lastSuccessfulTime": LATE}, [job("a", "Complete", done=EARLY)], [], LATE, []),
        ({"lastSuccessfulTime": EARLY}, [job("a", "Complete", done=LATE)], [], LATE, []),
        ({"active": [reference("a")]}, [job("a", done=LATE)], ["a"], "", []),
    ],
)
def test_observed_jobs(status, found, active, success, reasons):
    record = observe_jobs(CronJobStatus.of(cron_job(status)), found)
    assert ([each["name"] for each in record.active], record.last_success) == (active, success)
    assert [event.reason for event in record.events] == reasons
    assert {event.reason: event.type for event in record.events}.get("UnexpectedJob", "Warning") == "Warning"


def test_oldest_finished_jobs_are_beyond_the_limits():
    ended = [job("c", "Complete"), job("b", "Complete", start=LATE), job("a", "Complete", start=EARLY)]
    jobs = [*ended, job("f", "Failed"), job("g"), job("h", "Complete", start=EARLY)]
    for limits, names in (((None, None), ""), ((2, 1), "ah"), ((0, 0), "ahbcf"), ((9, 9), "")):
        tree = cron_job(successfulJobsHistoryLimit=limits[0], failedJobsHistoryLimit=limits[1])
        assert "".join(each["metadata"]["name"] for each in jobs_beyond_history_limit(tree, jobs)) == names


@pytest.mark.parametrize(
    ("tree", "due", "reasons"),
    [
        (cron_job(), True, []),
        (cron_job(deleted=True), False, []),
        (cron_job(suspend=True), False, []),
        (cron_job({"lastScheduleTime": "2030-01-01T00:30:00Z"}), False, []),
        (cron_job(schedule="* * * * *", created="2029-12-31T00:00:00Z"), True, ["TooManyMissedTimes"]),
        (cron_job({"active": [reference("x")]}, concurrencyPolicy="Forbid"), False, ["JobAlreadyActive"]),
        (cron_job(concurrencyPolicy="Forbid"), True, []),
        (cron_job({"active": [reference(f"c-{int(NOW.timestamp()) // 60}")]}), False, []),
        (cron_job(schedule="TZ=UTC */5 * * * *"), True, ["UnsupportedSchedule"]),
        (cron_job(timeZone="No/Where"), False, ["UnknownTimeZone"]),
        (cron_job(timeZone="No/Where", suspend=True), False, ["UnknownTimeZone"]),
        (cron_job(schedule="x", suspend=True), False, []),
    ],
)
def test_start_that_is_due(tree, due, reasons):
    record, time = controller._due_time(CronJobStatus.of(tree), NOW)
    assert time == (NOW if due else None)
    assert [event.reason for event in record.events] == reasons


@pytest.mark.parametrize(
    ("owner", "uid", "kind", "keys"),
    [
        ("c", "uid-c", "CronJob", [KEY]),
        ("c", "earlier", "CronJob", []),
        ("c", "uid-c", "Other", []),
        ("none", "uid-c", "CronJob", []),
        (None, "", "", []),
    ],
)
def test_change_of_a_job_is_one_of_its_cron_job(owner, uid, kind, keys):
    caches = FakeCaches({CRON_JOBS: [cron_job()]})
    owners = [{"kind": kind, "name": owner, "uid": uid, "controller": True}] if owner else []
    tree = {"metadata": {"name": "j", "namespace": "default", "ownerReferences": owners}}
    assert [*controller._cron_jobs_of_job(caches, Change(None, tree))] == keys
    assert [*controller._cron_jobs_of_job(caches, Change(tree, None))] == keys


@pytest.mark.parametrize(
    ("policy", "active", "deleted"), [("Replace", True, 1), ("Replace", False, 0), ("Allow", True, 0)]
)
def test_active_jobs_are_replaced(policy, active, deleted):
    status = {"active": [reference("x")]} if active else {}
    record = CronJobStatus.of(cron_job(status, concurrencyPolicy=policy))
    plan = controller._plan_start(FakeCaches({}), record, NOW)
    assert sum(isinstance(action, Delete) for action in plan.actions) == deleted


@pytest.mark.parametrize(
    ("owner", "active", "is_recorded"),
    [("uid-c", [], True), ("other", [], False), ("uid-c", ["uid-j"], False)],
)
def test_job_that_exists_is_recorded_once(owner, active, is_recorded):
    name = f"c-{int(NOW.timestamp()) // 60}"
    tree = job(name, uid="uid-j")
    tree["metadata"]["ownerReferences"] = [{"uid": owner, "controller": True}]
    record = CronJobStatus.of(cron_job({"active": [{**reference("x"), "uid": uid} for uid in active]}))
    plan = controller._plan_start(FakeCaches({JOBS: [tree]}), record, NOW)
    updates = [action.body["status"]["lastScheduleTime"] for action in plan.actions]
    assert updates == (["2030-01-01T00:30:00Z"] if is_recorded else [])


@pytest.mark.parametrize(
    ("annotation", "created", "count"),
    [("2030-01-01T00:00:00Z", LATE, 1), (None, LATE, 0), ("2030-01-01T00:00:00Z", None, 0)],
)
def test_skew_of_a_creation(annotation, created, count):
    metrics = MetricsRegistry()
    metadata = (
        {"annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": annotation}} if annotation else {}
    )
    response = {"metadata": {**metadata, **({"creationTimestamp": created} if created else {})}}
    outcome = SimpleNamespace(
        of=lambda _: [SimpleNamespace(response=response), SimpleNamespace(response=None)]
    )
    controller.SkewObserver(metrics).observe(None, outcome, 0.0, NOW)
    name = "cronjob_controller_job_creation_skew_duration_seconds"
    assert sample_value(metrics, f"{name}_count", {}) == count
    assert sample_value(metrics, f"{name}_sum", {}) == 120 * count

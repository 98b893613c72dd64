"""The CronJob controller: its watches, and the steps of a reconciliation.

First old Jobs are deleted, then a Job is created if one is due, then the status is written. Each step is a plan
that depends on the outcome of the previous one.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import cron, gotext, meta, timestamps
from mockube.apimachinery.cron import Schedule, ScheduleError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_CRONJOB_SCHEDULED_TIMESTAMP
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import CRON_JOBS, JOBS
from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    ObjectRef,
    Plan,
    PlanResult,
    Remember,
    Update,
)
from mockube.controller_manager.control.controller import Controller, OutcomeMetrics, Watch, key_of_object
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of

from . import start_times
from .jobs import CronJobStatus, creation, deletion, job_name, jobs_beyond_history_limit, observe_jobs

ScheduleAndZone = tuple[str, str | None]
"""The schedule and the time zone of a CronJob."""
BUCKETS: Final = tuple(2.0**power for power in range(10))
"""The buckets of the creation skew in seconds; they are upstream's."""
BY_CONTROLLER_NAME: Final = "controller-name"
"""The index of Jobs by the name of their controller, as `namespace/name`."""
_COMPARES_UIDS: Final = "1.37"
"""The first minor release in which a CronJob owns a Job only if the uid of its owner reference is that of the CronJob."""
_FINDS_EXISTING_JOB: Final = "1.37"
"""The first minor release whose controller records a start whose Job exists, but is not in the status."""
_MAX_WAIT: Final = timedelta(days=30)


def reconcile(caches: Caches, key: Key, now: datetime, memory: ScheduleAndZone | None) -> Plan:
    cron_job = caches.of(CRON_JOBS).get(*key)
    if cron_job is None:
        return Plan(actions=(Remember(None),))
    schedule_and_zone: ScheduleAndZone = (cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone"))
    remember = Remember(schedule_and_zone)
    jobs = _owned_jobs(caches, cron_job)
    if memory is not None and memory != schedule_and_zone:
        return _plan_reschedule(cron_job, remember, now)
    surplus = jobs_beyond_history_limit(cron_job, jobs)
    actions: tuple[Action, ...] = (deletion(cron_job, map(ObjectRef.of, surplus)),) if surplus else ()
    remaining_jobs = [job for job in jobs if job not in surplus]
    return Plan(
        actions=(remember, *actions),
        then=lambda outcome: _plan_start(
            caches, observe_jobs(_without_deleted(CronJobStatus.of(cron_job), outcome), remaining_jobs), now
        ),
        requeue_after=_until_next_start(cron_job, now),
    )


def _owned_jobs(caches: Caches, cron_job: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the Jobs whose controller the CronJob is; in older minors those of an earlier CronJob of its name, too."""
    if caches.gates.is_before(_COMPARES_UIDS):
        return caches.of(JOBS).by_index(BY_CONTROLLER_NAME, str(Key.of(cron_job)))
    return caches.of(JOBS).by_index(BY_OWNER, meta.uid(cron_job))


def _controller_name(job: ReadOnlyTree) -> Iterable[str]:
    controller = meta.controller_of(job)
    return () if controller is None else (str(Key(meta.namespace(job), controller["name"])),)


def _plan_reschedule(cron_job: ReadOnlyTree, remember: Remember, now: datetime) -> Plan:
    """Return the plan for a new schedule: it begins with its next time, and missed times are ignored."""
    return Plan(actions=(remember,), requeue_after=_until_next_start(cron_job, now))


def _until_next_start(cron_job: ReadOnlyTree, now: datetime) -> timedelta | None:
    """Return the time until the next start; None without one."""
    zone = cron_job["spec"].get("timeZone")
    if cron_job["spec"].get("suspend") or meta.is_deleting(cron_job) or (zone and cron.zone_problem(zone)):
        return None
    try:
        schedule = start_times.schedule_of(cron_job)
    except ScheduleError:
        return None
    return min(start_times.until_next_start(cron_job, schedule, now), _MAX_WAIT)


def _without_deleted(record: CronJobStatus, outcome: PlanResult) -> CronJobStatus:
    """Return the record without the Jobs that were deleted."""
    deleted = {write.key for write in outcome.of(Delete)}
    uids = [
        reference.get("uid", "")
        for reference in record.active
        if Key(reference.get("namespace", ""), reference.get("name", "")) in deleted
    ]
    return record.without(uids)


# --- creation of a Job


def _plan_start(caches: Caches, record: CronJobStatus, now: datetime) -> Plan:
    """Return the plan that creates the due Job, if there is one and the concurrency policy allows it."""
    record, due = _due_time(record, now)
    cron_job = record.cron_job
    if due is None:
        return _plan_status(record)
    existing = caches.of(JOBS).get(meta.namespace(cron_job), job_name(cron_job, due))
    if existing is not None:
        is_unrecorded = meta.is_controlled_by(existing, cron_job) and not record.is_active(meta.uid(existing))
        # Older controllers look for the Job in no namespace, and do not find it.
        is_found = not caches.gates.is_before(_FINDS_EXISTING_JOB)
        return _plan_status(record.with_start(existing, due) if is_unrecorded and is_found else record)
    deletions: tuple[Action, ...] = ()
    if cron_job["spec"].get("concurrencyPolicy") == "Replace" and record.active:
        deletions = (deletion(cron_job, map(_job_ref, record.active)),)
    return Plan(
        actions=(*record.events, *deletions, creation(cron_job, due)),
        then=lambda outcome: _plan_after_start(_without_deleted(record, outcome), due, outcome),
    )


def _job_ref(reference: ReadOnlyTree) -> ObjectRef:
    return ObjectRef(Key(reference["namespace"], reference["name"]), reference["uid"])


def _plan_after_start(record: CronJobStatus, due: datetime, outcome: PlanResult) -> Plan:
    jobs = [write.response for write in outcome.of(Create) if write.response is not None]
    for job in jobs:
        record = record.with_start(job, due)
    return _plan_status(record, are_recorded=True)


def _due_time(record: CronJobStatus, now: datetime) -> tuple[CronJobStatus, datetime | None]:
    """Return the time whose Job is due now, and the record with an Event if a start was missed."""
    cron_job = record.cron_job
    spec, zone = cron_job["spec"], cron_job["spec"].get("timeZone")
    if meta.is_deleting(cron_job):
        return record, None
    if zone is not None and (problem := cron.zone_problem(zone)):
        return record.with_event(
            "Warning", "UnknownTimeZone", f"invalid timeZone: {gotext.quote(zone)}: {problem}"
        ), None
    if spec.get("suspend"):
        return record, None
    if start_times.has_zone_in_schedule(cron_job):
        record = record.with_event(
            "Warning", "UnsupportedSchedule", start_times.unsupported_message(cron_job)
        )
    try:
        schedule = start_times.schedule_of(cron_job)
    except ScheduleError as wrong:
        message = f"unparseable schedule: {gotext.quote(spec['schedule'])} : {wrong}"
        return record.with_event("Warning", "UnparseableSchedule", message), None
    try:
        return _missed_start(record, schedule, now)
    except ScheduleError as wrong:
        message = f"invalid schedule: {spec['schedule']} : {wrong}"
        return record.with_event("Warning", "InvalidSchedule", message), None


def _missed_start(
    record: CronJobStatus, schedule: Schedule, now: datetime
) -> tuple[CronJobStatus, datetime | None]:
    spec = record.cron_job["spec"]
    missed_times = start_times.missed_starts(record.cron_job, schedule, now, within_deadline=True)
    if missed_times.latest is None:
        return record, None
    if missed_times.are_too_many:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        record = record.with_event("Warning", "TooManyMissedTimes", message)
    names = {reference.get("name") for reference in record.active}
    if job_name(
        record.cron_job, missed_times.latest
    ) in names or record.last_schedule == timestamps.format_time(missed_times.latest):
        return record, None
    if spec.get("concurrencyPolicy") == "Forbid" and record.active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return record.with_event("Normal", "JobAlreadyActive", message), None
    return record, missed_times.latest


def _plan_status(record: CronJobStatus, *, are_recorded: bool = False) -> Plan:
    """Return the plan that records the Events, unless they are recorded, and writes the status if it differs."""
    events = () if are_recorded else record.events
    old, new = record.cron_job.get("status") or {}, record.status()
    if {field: value for field, value in old.items() if value} == new:
        return Plan(actions=events)
    body = {**record.cron_job, "status": new}
    return Plan(actions=(*events, Update(resource=CRON_JOBS, body=body, subresource="status")))


# --- the CronJobs that a change affects


def _cron_jobs_of_job(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the keys of the CronJobs that own the Job now and did before."""
    for job in change:
        reference = None if job is None else meta.controller_of(job)
        if job is None or reference is None or reference["kind"] != CRON_JOBS.kind:
            continue
        owner = caches.of(CRON_JOBS).get(meta.namespace(job), reference["name"])
        if owner is not None and meta.uid(owner) == reference["uid"]:
            yield Key.of(owner)


class SkewObserver(OutcomeMetrics):
    """Measures the time from a Job's scheduled time to its creation."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._skew = metrics.distributions(families.CRON_JOB_SKEW).of()

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        for write in outcome.of(Create):
            job = write.response or {}
            scheduled = meta.annotations(job).get(ANNOTATION_CRONJOB_SCHEDULED_TIMESTAMP)
            created = meta.creation_timestamp(job)
            if scheduled and created is not None:
                self._skew.observe((created - timestamps.parse_time(scheduled)).total_seconds())


CRON_JOB: Final = Controller(
    name="cronjob-controller",
    queue="cronjob",
    service_account="cronjob-controller",
    watches=(Watch(resource=CRON_JOBS, keys=key_of_object), Watch(resource=JOBS, keys=_cron_jobs_of_job)),
    reconcile=reconcile,
    has_memory=True,
    outcome_metrics=SkewObserver,
    workers=5,
    indexes={JOBS: {BY_OWNER: owner_of, BY_CONTROLLER_NAME: _controller_name}},
)

"""The Jobs of a CronJob: the status that lists them, the old ones to delete, and the body of a new one."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions, cron, meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_CRONJOB_SCHEDULED_TIMESTAMP
from mockube.client.kinds import JOBS
from mockube.controller_manager.control.actions import Create, Delete, EventTemplate, ObjectRef, RecordEvent


def finished_condition_type(job: ReadOnlyTree) -> str:
    """Return Complete or Failed; empty for a Job that is not finished."""
    ends = (kind for kind in ("Complete", "Failed") if conditions.is_true(job, kind))
    return next(ends, "")


class CronJobStatus(Struct, frozen=True):
    """The new status of a CronJob, and the Events about its changes."""

    cron_job: ReadOnlyTree
    active: tuple[ReadOnlyTree, ...]
    last_schedule: str
    last_success: str
    events: tuple[RecordEvent, ...] = ()

    @classmethod
    def of(cls, cron_job: ReadOnlyTree) -> "CronJobStatus":
        status = cron_job.get("status") or {}
        return cls(
            cron_job,
            tuple(status.get("active") or ()),
            status.get("lastScheduleTime") or "",
            status.get("lastSuccessfulTime") or "",
        )

    def is_active(self, uid: str) -> bool:
        return any(reference.get("uid") == uid for reference in self.active)

    def without(self, uids: Iterable[str]) -> "CronJobStatus":
        removed = set(uids)
        return replace(
            self, active=tuple(reference for reference in self.active if reference.get("uid") not in removed)
        )

    def with_event(self, type_: Literal["Normal", "Warning"], reason: str, message: str) -> "CronJobStatus":
        event = RecordEvent(
            about=self.cron_job,
            type=type_,
            reason=reason,
            message=message,
        )
        return replace(self, events=(*self.events, event))

    def with_start(self, job: ReadOnlyTree, time: datetime) -> "CronJobStatus":
        reference = {
            "kind": JOBS.kind,
            "namespace": meta.namespace(job),
            "name": meta.name(job),
            "uid": meta.uid(job),
            "apiVersion": JOBS.api_version,
            "resourceVersion": meta.resource_version(job),
        }
        return replace(self, active=(*self.active, reference), last_schedule=format_time(time))

    def status(self) -> dict[str, Any]:
        fields = {
            "active": [*self.active],
            "lastScheduleTime": self.last_schedule,
            "lastSuccessfulTime": self.last_success,
        }
        return {field: value for field, value in fields.items() if value}


def observe_jobs(record: CronJobStatus, jobs: Sequence[ReadOnlyTree]) -> CronJobStatus:
    """Return the record with the present states of the Jobs."""
    for job in jobs:
        name, end, is_active = meta.name(job), finished_condition_type(job), record.is_active(meta.uid(job))
        if not end and not is_active:
            message = f"Saw a job that the controller did not create or forgot: {name}"
            record = record.with_event("Warning", "UnexpectedJob", message)
        if end and is_active:
            message = f"Saw completed job: {name}, condition: {end}"
            record = record.without([meta.uid(job)]).with_event("Normal", "SawCompletedJob", message)
        done = (job.get("status") or {}).get("completionTime") or ""
        if end == "Complete" and done and _is_later(done, record.last_success):
            record = replace(record, last_success=done)
    job_uids = {meta.uid(job) for job in jobs}
    for reference in record.active:
        if reference.get("uid") not in job_uids:
            message = f"Active job went missing: {reference.get('name')}"
            record = record.without([reference.get("uid", "")]).with_event("Normal", "MissingJob", message)
    return record


def _is_later(time: str, other: str) -> bool:
    return not other or parse_time(time) > parse_time(other)


def jobs_beyond_history_limit(cron_job: ReadOnlyTree, jobs: Sequence[ReadOnlyTree]) -> list[ReadOnlyTree]:
    """Return the oldest finished Jobs beyond the history limits."""
    spec = cron_job["spec"]
    limits = (
        ("Complete", spec.get("successfulJobsHistoryLimit")),
        ("Failed", spec.get("failedJobsHistoryLimit")),
    )
    surplus: list[ReadOnlyTree] = []
    for end, limit in limits:
        ended = sorted((job for job in jobs if finished_condition_type(job) == end), key=_start_time_key)
        surplus += ended[: max(0, len(ended) - limit)] if limit is not None else []
    return surplus


def _start_time_key(job: ReadOnlyTree) -> tuple[bool, str, str]:
    time = (job.get("status") or {}).get("startTime") or ""
    return not time, time, meta.name(job)


def deletion(cron_job: ReadOnlyTree, refs: Iterable[ObjectRef]) -> Delete:
    event = EventTemplate(
        about=cron_job,
        on_success=("SuccessfulDelete", "Deleted job {name}"),
        on_failure=("FailedDelete", "Deleted job: {error}"),
    )
    return Delete(resource=JOBS, objects=tuple(refs), propagation="Background", event=event)


def job_name(cron_job: ReadOnlyTree, time: datetime) -> str:
    """Return the Job's name. It depends on the minute, so that no Job is created twice."""
    return f"{meta.name(cron_job)}-{int(time.timestamp()) // 60}"


def creation(cron_job: ReadOnlyTree, time: datetime) -> Create:
    template = cron_job["spec"]["jobTemplate"]
    zone = cron.zone_of(cron_job["spec"].get("timeZone") or "")
    local = time.astimezone(zone).isoformat()
    stamp = f"{local[:-6]}Z" if local.endswith("+00:00") else local
    metadata = {
        "name": job_name(cron_job, time),
        "namespace": meta.namespace(cron_job),
        "labels": dict(meta.labels(template)),
        "annotations": {**meta.annotations(template), ANNOTATION_CRONJOB_SCHEDULED_TIMESTAMP: stamp},
        "ownerReferences": [meta.controller_reference(cron_job)],
    }
    body = {
        "kind": JOBS.kind,
        "apiVersion": JOBS.api_version,
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }
    event = EventTemplate(
        about=cron_job,
        on_success=("SuccessfulCreate", "Created job {name}"),
        on_failure=("FailedCreate", "Error creating job: {error}"),
    )
    return Create(resource=JOBS, bodies=(body,), event=event)

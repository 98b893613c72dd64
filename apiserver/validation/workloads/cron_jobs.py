"""CronJobs, which make Jobs of templates."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation.objectmeta import METADATA
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import leniency_towards_template
from apiserver.validation.rules import Tree, every, field, non_negative, one_of, required
from apiserver.validation.workloads.jobs import check_job_spec
from apiserver.validation.workloads.schedules import check_schedule, check_time_zone

_LONGEST_NAME: Final = 52
"""So that a Job's name, with the time at its end, is one of a pod."""

_POLICY: Final = required("concurrencyPolicy", one_of("Allow", "Forbid", "Replace"))
_LIMITS: Final = every(
    field("successfulJobsHistoryLimit", non_negative), field("failedJobsHistoryLimit", non_negative)
)


def _check_times(spec: Tree, old: Tree | None, path: Path) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if schedule:
        had_zone = old is not None and "TZ" in old.get("schedule", "")
        yield from check_schedule(schedule, zone, path.child("schedule"), had_zone=had_zone)
    else:
        yield errors.required(path.child("schedule"))
    yield from field("startingDeadlineSeconds", non_negative)(spec, path)
    if zone is not None and (old is None or old.get("timeZone") != zone):
        yield from check_time_zone(zone, path.child("timeZone"))


def _check_job_template(template: Tree, path: Path, leniency: Leniency) -> Iterator[FieldError]:
    """Each Job gets a selector of its own."""
    spec, path = template.get("spec") or {}, path.child("spec")
    yield from check_job_spec(spec, path, leniency)
    if spec.get("selector") is not None:
        problem = "`selector` will be auto-generated"
        yield errors.invalid(path.child("selector"), spec["selector"], problem)
    if spec.get("manualSelector"):
        yield errors.not_supported(path.child("manualSelector"), spec["manualSelector"], ("nil", "false"))


def _check_spec(spec: Tree, old: Tree | None, leniency: Leniency) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _check_times(spec, old, path)
    yield from _POLICY(spec, path)
    yield from _check_job_template(spec.get("jobTemplate") or {}, path.child("jobTemplate"), leniency)
    yield from _LIMITS(spec, path)


def check_cron_job(cron_job: Tree) -> Iterator[FieldError]:
    name = meta.name(cron_job)
    yield from _check_spec(cron_job.get("spec") or {}, None, STRICT)
    if len(name.encode()) > _LONGEST_NAME:
        problem = f"must be no more than {_LONGEST_NAME} characters"
        yield errors.invalid(METADATA.child("name"), name, problem)


def check_cron_job_change(new: Tree, old: Tree) -> Iterator[FieldError]:
    was = old.get("spec") or {}
    template = ((was.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    yield from _check_spec(new.get("spec") or {}, was, leniency_towards_template(template))

"""CronJob."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import cron, errors, meta
from mockube.apimachinery.cron import ScheduleError
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells, checks
from mockube.apiserver.kinds.common.declared import DeclaredRules, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import METADATA
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import name_account
from mockube.apiserver.kinds.core.pod.pod_template import (
    is_new_generation,
    options_from_old_template,
    pod_warnings_of,
)
from mockube.apiserver.kinds.core.pod.strategy import disabled_in_template, emptiable_in
from mockube.apiserver.kinds.core.pod.warnings import IN_POD_NAMES, name_warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Gate, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .job.job import completions_warnings
from .job.validation import check_job_spec

# --- validation of schedules

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z.\-_0-9+]{1,14}")


def _check_time_zone(zone: str, path: Path) -> Iterator[FieldError]:
    """Check that the time zone exists and is not `Local`."""
    if not zone:
        yield errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for name in zone.split("/"):
        if name in (".", "..") or not _ZONE_PART.fullmatch(name):
            yield errors.invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == cron.LOCAL.lower():
        problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield errors.invalid(path, zone, problem)
    if problem := cron.zone_problem(zone):
        yield errors.invalid(path, zone, problem)


def _check_schedule(schedule: str, zone: str | None, path: Path, *, had_zone: bool) -> Iterator[FieldError]:
    """Check the schedule. With `had_zone`, the old schedule contains a time zone, and the new one may, too."""
    try:
        cron.parse(schedule)
    except ScheduleError as error:
        yield errors.invalid(path, schedule, str(error))
    if "TZ" not in schedule:
        return
    if not had_zone:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield errors.invalid(path, schedule, problem)
    elif zone is not None:
        problem = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield errors.invalid(path, schedule, problem)


# --- validation of other fields

_MAX_NAME_LENGTH: Final = 52
"""The name of a Job has a suffix for its time, and is the prefix of its pods' names."""

_POLICY: Final = checks.require("concurrencyPolicy", checks.one_of("Allow", "Forbid", "Replace"))
_LIMITS: Final = checks.all_of(
    checks.field("successfulJobsHistoryLimit", checks.non_negative),
    checks.field("failedJobsHistoryLimit", checks.non_negative),
)


def _check_times(spec: ReadOnlyTree, old: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if schedule:
        had_zone = old is not None and "TZ" in old.get("schedule", "")
        yield from _check_schedule(schedule, zone, path.child("schedule"), had_zone=had_zone)
    else:
        yield errors.required(path.child("schedule"))
    yield from checks.field("startingDeadlineSeconds", checks.non_negative)(spec, path)
    if zone is not None and (old is None or old.get("timeZone") != zone):
        yield from _check_time_zone(zone, path.child("timeZone"))


def _check_job_template(
    template: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Check the template of Jobs, which must not have a selector: one is generated for each Job."""
    spec, path = template.get("spec") or {}, path.child("spec")
    yield from check_job_spec(spec, path, options)
    if spec.get("selector") is not None:
        problem = "`selector` will be auto-generated"
        yield errors.invalid(path.child("selector"), spec["selector"], problem)
    if spec.get("manualSelector"):
        yield errors.not_supported(path.child("manualSelector"), spec["manualSelector"], ("nil", "false"))


def _check_spec(
    spec: ReadOnlyTree, old: ReadOnlyTree | None, options: PodValidationOptions
) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _check_times(spec, old, path)
    yield from _POLICY(spec, path)
    yield from _check_job_template(spec.get("jobTemplate") or {}, path.child("jobTemplate"), options)
    yield from _LIMITS(spec, path)


def _create(cron_job: ReadOnlyTree) -> Iterator[FieldError]:
    name = meta.name(cron_job)
    yield from _check_spec(cron_job.get("spec") or {}, None, STRICT)
    if len(name.encode()) > _MAX_NAME_LENGTH:
        problem = f"must be no more than {_MAX_NAME_LENGTH} characters"
        yield errors.invalid(METADATA.child("name"), name, problem)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    old_spec = old.get("spec") or {}
    template = ((old_spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    yield from _check_spec(new.get("spec") or {}, old_spec, options_from_old_template(template))


# --- warnings and columns

_pod_warnings: Final = pod_warnings_of(GroupKind("batch", "CronJob"))


def _warnings(tree: ReadOnlyTree) -> Iterator[str]:
    yield from completions_warnings(
        (tree.get("spec") or {}).get("jobTemplate") or {}, "spec.jobTemplate.spec"
    )
    yield from _pod_warnings(tree)


def _warn_create(tree: ReadOnlyTree) -> Iterator[str]:
    yield from name_warnings(tree, IN_POD_NAMES)
    yield from _warnings(tree)


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if is_new_generation(new, old):
        yield from _warnings(new)
    if "TZ" in (new.get("spec") or {}).get("schedule", ""):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


def _cells(tree: Tree, now: datetime) -> list[Any]:
    last = cells.time(tree, "status", "lastScheduleTime")
    job = cells.part(tree, "spec", "jobTemplate", "spec")
    return [
        meta.name(tree),
        cells.text(tree, "spec", "schedule"),
        cells.text(tree, "spec", "timeZone", default="<none>"),
        cells.text(tree, "spec", "suspend", default="<unset>"),
        cells.count(tree, "status", "active"),
        ages.since(last, now) if last else "<none>",
        ages.age(tree, now),
        *cells.names_and_images(cells.part(job, "template")),
        cells.selector_text(cells.part(job, "selector")),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="batch",
        version="v1",
        name="cronjobs",
        kind="CronJob",
        categories=("all",),
        short_names=("cj",),
        subresources=(STATUS,),
    ),
    strategy=Strategy(
        generation=SPEC,
        first_generation=1,
        emptiable=emptiable_in("spec.jobTemplate.spec.template.spec"),
        disabled=disabled_in_template(
            "spec.jobTemplate.spec.template", Gate(("spec.jobTemplate.spec.scheduling",))
        ),
    ),
    validation=Validation(create=_create, update=_update, declared=DeclaredRules(required("spec.schedule"))),
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Schedule"),
            Column(name="Timezone"),
            Column(name="Suspend", type="boolean"),
            Column(name="Active", type="integer"),
            Column(name="Last Schedule"),
            AGE_COLUMN,
            cells.CONTAINERS,
            cells.IMAGES,
            cells.SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.batch.v1",
        {
            "CronJobSpec": {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            }
        },
    ),
    internal_changes=(partial(name_account, ("spec", "jobTemplate", "spec", "template", "spec")),),
)

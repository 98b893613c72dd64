"""The columns of batch."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages, selectors
from apiserver.resources.columns.containers import CONTAINERS, IMAGES, SELECTOR, names_and_images
from apiserver.resources.columns.parts import condition, count, number, part, text, time
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree

_FINISHED: Final = ("Complete", "Failed")
_UNFINISHED: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
"""Conditions that a job's status is called after, each before those that follow."""


def _job(job: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(job),
        _status(job),
        _completions(job),
        _duration(job, now),
        ages.age(job, now),
        *names_and_images(part(job, "spec", "template")),
        selectors.of_selector(part(job, "spec", "selector")),
    ]


def _status(job: Tree) -> str:
    deleting = ("Terminating",) if meta.is_deleting(job) else ()
    finished = (each for each in _FINISHED if condition(job, each) == "True")
    unfinished = (each for each in _UNFINISHED if condition(job, each) == "True")
    return next(iter((*finished, *deleting, *unfinished)), "Running")


def _completions(job: Tree) -> str:
    succeeded, completions = number(job, "status", "succeeded"), part(job, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Tree, now: datetime) -> str:
    start = time(job, "status", "startTime")
    return ages.human((time(job, "status", "completionTime") or now) - start) if start else ""


def _cron_job(tree: Tree, now: datetime) -> list[Any]:
    last = time(tree, "status", "lastScheduleTime")
    job = part(tree, "spec", "jobTemplate", "spec")
    return [
        meta.name(tree),
        text(tree, "spec", "schedule"),
        text(tree, "spec", "timeZone", default="<none>"),
        text(tree, "spec", "suspend", default="<unset>"),
        count(tree, "status", "active"),
        ages.since(last, now) if last else "<none>",
        ages.age(tree, now),
        *names_and_images(part(job, "template")),
        selectors.of_selector(part(job, "selector")),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "Job": Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Completions"),
            Column(name="Duration"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_job,
    ),
    "CronJob": Printer(
        columns=(
            NAME,
            Column(name="Schedule"),
            Column(name="Timezone"),
            Column(name="Suspend", type="boolean"),
            Column(name="Active", type="integer"),
            Column(name="Last Schedule"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_cron_job,
    ),
}

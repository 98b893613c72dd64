"""Job. Its validation is in the other modules of this folder."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells, defaults
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.pod_template import is_new_generation, pod_warnings_of
from mockube.apiserver.kinds.core.pod.strategy import EMPTIABLE_IN_TEMPLATE, disabled_in_template
from mockube.apiserver.kinds.core.pod.warnings import IN_POD_NAMES, name_warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import ORPHAN, SPEC, Gate, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .status_validation import check_status_change
from .validation import check_job_change, check_new_job, check_older_job_change

# --- strategy

_TEMPLATE_LABELS = ("template", "metadata", "labels")

_ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


def _select_own_pods(job: Tree, _request: StrategyContext) -> None:
    """Label the pod template with the Job's uid and select by that, unless the Job has a manual selector."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    template_labels, name, uid = meta.labels(spec.get("template", {})), meta.name(job), metadata["uid"]
    # Labels of the client are kept: validation refuses other values.
    generated_labels = {
        wellknown.LABEL_JOB_CONTROLLER_UID: uid,
        wellknown.LABEL_JOB_NAME: name,
        wellknown.LABEL_JOB_CONTROLLER_UID_LEGACY: uid,
        wellknown.LABEL_JOB_NAME_LEGACY: name,
    }
    labels = dict(sorted({**generated_labels, **template_labels}.items()))
    # A Job without labels of its own, or with those of its template by default, gets the template's labels.
    if metadata.get("labels", template_labels) == template_labels:
        metadata["labels"] = labels
    selector = spec.get("selector") or {}
    match = dict(sorted({wellknown.LABEL_JOB_CONTROLLER_UID: uid, **selector.get("matchLabels", {})}.items()))
    job["spec"] = meta.with_value(spec, _TEMPLATE_LABELS, labels) | {
        "selector": {"matchLabels": {}} | selector | {"matchLabels": match}
    }


_STRATEGY = Strategy(
    generation=SPEC,
    first_generation=1,
    disabled=disabled_in_template("spec.template", Gate(("spec.scheduling",))),
    emptiable=EMPTIABLE_IN_TEMPLATE,
    prepare_create=_select_own_pods,
    prepare_update={"status": defaults.restore_template_labels},
    exact_times=(("status", "startTime"), ("status", "completionTime")),
    dependents=ORPHAN,
    dependents_warning=_ORPHANED_PODS,
)


# --- defaults

_BACKOFF_LIMIT: Final = 6
_NO_BACKOFF_LIMIT: Final = 2**31 - 1


def _default_job(job: Tree) -> None:
    """Set the defaults of a Job. They do not apply to the Job template of a CronJob."""
    spec = job["spec"]
    if "parallelism" not in spec:
        spec["parallelism"] = 1
        spec.setdefault("completions", 1)
    # With a limit for each index, the Job has no limit by default.
    spec.setdefault("backoffLimit", _NO_BACKOFF_LIMIT if "backoffLimitPerIndex" in spec else _BACKOFF_LIMIT)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    labels = spec["template"]["metadata"].get("labels")
    if labels and "labels" not in job["metadata"]:
        defaults.set_labels(job["metadata"], labels)


# --- warnings

_MANY_COMPLETIONS, _MANY_IN_PARALLEL = 100_000, 10_000
_TOO_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)

_pod_warnings: Final = pod_warnings_of(GroupKind("batch", "Job"))


def completions_warnings(job: ReadOnlyTree, path: str) -> Iterator[str]:
    spec = job.get("spec") or {}
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > _MANY_COMPLETIONS
        and (spec.get("parallelism") or 0) > _MANY_IN_PARALLEL
    ):
        yield f"{path}: {_TOO_MANY_INDEXES}"


def _warnings(tree: ReadOnlyTree) -> Iterator[str]:
    yield from completions_warnings(tree, "spec")
    yield from _pod_warnings(tree)


def _warn_create(tree: ReadOnlyTree) -> Iterator[str]:
    yield from name_warnings(tree, IN_POD_NAMES)
    yield from _warnings(tree)


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if is_new_generation(new, old):
        yield from _warnings(new)


# --- columns

_FINISHED: Final = ("Complete", "Failed")
_UNFINISHED: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
"""The conditions that are printed as the status of a Job, by priority."""


def _cells(job: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(job),
        _status(job),
        _completions(job),
        _duration(job, now),
        ages.age(job, now),
        *cells.names_and_images(cells.part(job, "spec", "template")),
        cells.selector_text(cells.part(job, "spec", "selector")),
    ]


def _status(job: Tree) -> str:
    deleting = ("Terminating",) if meta.is_deleting(job) else ()
    finished = (each for each in _FINISHED if cells.condition(job, each) == "True")
    unfinished = (each for each in _UNFINISHED if cells.condition(job, each) == "True")
    return next(iter((*finished, *deleting, *unfinished)), "Running")


def _completions(job: Tree) -> str:
    succeeded, completions = cells.number(job, "status", "succeeded"), cells.part(job, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = cells.number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Tree, now: datetime) -> str:
    start = cells.time(job, "status", "startTime")
    return ages.human_duration((cells.time(job, "status", "completionTime") or now) - start) if start else ""


_VALIDATION: Final = Validation(
    metadata_first=False,
    create=check_new_job,
    update=check_job_change,
    subresources={"status": check_status_change},
)
OLDER_VALIDATION: Final = replace(_VALIDATION, update=check_older_job_change)

KIND: Final = Kind(
    resource=Resource(
        group="batch",
        version="v1",
        name="jobs",
        kind="Job",
        selectable=(selectable("status.successful", "status.succeeded", absent="0"),),
        refused_label="field label {quoted} not supported for Job",
        categories=("all",),
        subresources=(STATUS,),
    ),
    strategy=_STRATEGY,
    validation=_VALIDATION,
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Completions"),
            Column(name="Duration"),
            AGE_COLUMN,
            cells.CONTAINERS,
            cells.IMAGES,
            cells.SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults.defaults_table(
        "io.k8s.api.batch.v1",
        {
            "Job": _default_job,
            "JobSpec": defaults.FILLED_BY_OWNER,
            "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
        },
    ),
    internal_changes=INTERNAL_CHANGES_OF_TEMPLATE,
)

"""Deployment."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, labels, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_ROLLBACK_TO
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells
from mockube.apiserver.kinds.common.checks import all_of, field, non_negative
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import Validation, immutable_fields, in_order
from mockube.apiserver.kinds.core.pod import workloads
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.pod_template import options_from_old_workload, warnings_of_kind
from mockube.apiserver.kinds.core.pod.strategy import DISABLED_IN_TEMPLATE, EMPTIABLE_IN_TEMPLATE
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, SPEC, Strategy
from mockube.apiserver.kinds.strategy import STATUS as STATUS_FIELDS
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .replica_set import check_selected_replicas

# --- validation

_RECREATE, _ROLLING_UPDATE = "Recreate", "RollingUpdate"


def _check_rolling_update(update: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    max_unavailable, max_surge = update.get("maxUnavailable", 0), update.get("maxSurge", 0)
    field_path = path.child("maxUnavailable")
    yield from workloads.check_amount(max_unavailable, field_path)
    yield from workloads.check_amount(max_surge, path.child("maxSurge"))
    if not workloads.value_of(max_unavailable) and not workloads.value_of(max_surge):
        yield errors.invalid(field_path, max_unavailable, "may not be 0 when `maxSurge` is 0")
    yield from workloads.check_not_more_than_100_percent(max_unavailable, field_path)


def _check_strategy(strategy: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    strategy_type, update = strategy.get("type", ""), strategy.get("rollingUpdate")
    field_path = path.child("rollingUpdate")
    if strategy_type not in (_RECREATE, _ROLLING_UPDATE):
        value = internal("apps.DeploymentStrategy", strategy)
        return (errors.not_supported(path, value, (_RECREATE, _ROLLING_UPDATE)),)
    if strategy_type == _ROLLING_UPDATE:
        if update is None:
            return (errors.required(field_path, "this should be defaulted and never be nil"),)
        return _check_rolling_update(update, field_path)
    detail = f"may not be specified when strategy `type` is '{_RECREATE}'"
    return () if update is None else (errors.forbidden(field_path, detail),)


def _check_deadline(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that pods can become available before the progress deadline."""
    seconds, path = spec.get("progressDeadlineSeconds"), path.child("progressDeadlineSeconds")
    if seconds is None:
        return
    yield from non_negative(seconds, path)
    if seconds <= spec.get("minReadySeconds", 0):
        yield errors.invalid(path, seconds, "must be greater than minReadySeconds")


_REPLICAS: Final = field("replicas", non_negative)
_OTHER_FIELDS: Final = all_of(
    field("strategy", _check_strategy, absent={}),
    field("minReadySeconds", non_negative),
    field("revisionHistoryLimit", non_negative),
)


def _check_rollback(deployment: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the revision of a rollback, which v1 has in an annotation. Upstream reports it as a field."""
    text = meta.annotations(deployment).get(ANNOTATION_ROLLBACK_TO)
    return non_negative(int(text), path.child("rollback", "version")) if text else ()


def _check_spec(deployment: ReadOnlyTree, options: PodValidationOptions) -> Iterator[FieldError]:
    spec, path = deployment.get("spec") or {}, ROOT.child("spec")
    yield from _REPLICAS(spec, path)
    yield from check_selected_replicas(spec, path, options)
    yield from _OTHER_FIELDS(spec, path)
    yield from _check_rollback(deployment, path)
    yield from _check_deadline(spec, path)


def _create(deployment: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(deployment, STRICT)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(new, options_from_old_workload(old))


_STATUS: Final = all_of(
    workloads.counts(
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    workloads.at_most_field(
        "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", title="status.replicas"
    ),
    workloads.at_most_field("readyReplicas", "availableReplicas", title="readyReplicas"),
)  # fmt: skip


# --- columns


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        workloads.ready_replicas(tree),
        cells.number(tree, "status", "updatedReplicas"),
        cells.number(tree, "status", "availableReplicas"),
        ages.age(tree, now),
        *cells.names_and_images(cells.part(tree, "spec", "template")),
        _selector(tree),
    ]


def _selector(tree: Tree) -> str:
    """Return the selector. Unlike for other kinds, an empty one is an empty string, and an invalid one `<invalid>`."""
    try:
        return str(labels.from_label_selector(cells.part(tree, "spec", "selector")))
    except labels.SelectorError:
        return "<invalid>"


def _normalize_rollback(deployment: Tree) -> None:
    """Normalize the annotation with the revision to roll back to: it was a field once, and must be a number."""
    metadata = deployment.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    text = annotations.get(ANNOTATION_ROLLBACK_TO)
    if text is None:
        return
    others = {name: value for name, value in annotations.items() if name != ANNOTATION_ROLLBACK_TO}
    if text:
        about = f"failed to parse annotation[{ANNOTATION_ROLLBACK_TO}]={text} as int64: "
        others[ANNOTATION_ROLLBACK_TO] = workloads.normalize_number("Deployment", text, about)
    deployment["metadata"] = metadata | {"annotations": others}
    if not others:
        deployment["metadata"].pop("annotations")


KIND: Final = Kind(
    resource=Resource(
        group="apps",
        version="v1",
        name="deployments",
        kind="Deployment",
        categories=("all",),
        short_names=("deploy",),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    strategy=Strategy(
        resets={MAIN: STATUS_FIELDS, "status": (*SPEC, ("metadata", "labels"))},
        generation=(*SPEC, ("metadata", "annotations")),
        first_generation=1,
        disabled=DISABLED_IN_TEMPLATE,
        emptiable=EMPTIABLE_IN_TEMPLATE,
    ),
    validation=Validation(
        create=_create,
        update=in_order(_update, immutable_fields("spec", "selector")),
        subresources={"status": in_order(workloads.status_update(_STATUS), workloads.check_collisions)},
    ),
    warnings=warnings_of_kind("apps", "Deployment", named=True),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Ready"),
            Column(name="Up-to-date"),
            Column(name="Available"),
            AGE_COLUMN,
            cells.CONTAINERS,
            cells.IMAGES,
            cells.SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.apps.v1",
        {
            "DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
            "DeploymentStrategy": (
                {"type": _ROLLING_UPDATE},
                workloads.default_rolling_update(maxUnavailable="25%", maxSurge="25%"),
            ),
        },
    ),
    internal_changes=(*INTERNAL_CHANGES_OF_TEMPLATE, _normalize_rollback),
)

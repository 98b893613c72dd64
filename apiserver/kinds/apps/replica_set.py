"""ReplicaSet, and the check of selector and template that a Deployment shares."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import (
    CONTAINERS,
    IMAGES,
    SELECTOR,
    names_and_images,
    number,
    part,
    selector_text,
)
from mockube.apiserver.kinds.common.checks import all_of, field, non_negative
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import Validation, immutable_fields, in_order
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.pod_template import options_from_old_template, warnings_of_kind
from mockube.apiserver.kinds.core.pod.strategy import DISABLED_IN_TEMPLATE
from mockube.apiserver.kinds.core.pod.workloads import (
    at_most_field,
    check_required_selector,
    check_selected_template,
    counts,
    selector_of,
    status_update,
)
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_NUMBERS: Final = all_of(field("replicas", non_negative), field("minReadySeconds", non_negative))


def check_selected_replicas(
    spec: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Check the selector and the template of a ReplicaSet or a Deployment."""
    yield from check_required_selector(spec, path, "deployment")
    selector, template = selector_of(spec), spec.get("template") or {}
    if selector is None:
        yield errors.invalid(path.child("selector"), spec.get("selector"), "invalid label selector")
    else:
        field_path = path.child("template")
        yield from check_selected_template(template, selector, field_path, kind="ReplicaSet", options=options)


def _check_spec(spec: ReadOnlyTree, options: PodValidationOptions) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _NUMBERS(spec, path)
    yield from check_selected_replicas(spec, path, options)


def _create(replica_set: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(replica_set.get("spec") or {}, STRICT)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    old_template = (old.get("spec") or {}).get("template") or {}
    return _check_spec(new.get("spec") or {}, options_from_old_template(old_template))


_STATUS: Final = all_of(
    counts(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    ),
    at_most_field(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", title="status.replicas"
    ),
    at_most_field("readyReplicas", "availableReplicas", title="readyReplicas"),
)  # fmt: skip


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "spec", "replicas"),
        number(tree, "status", "replicas"),
        number(tree, "status", "readyReplicas"),
        ages.age(tree, now),
        *names_and_images(part(tree, "spec", "template")),
        selector_text(part(tree, "spec", "selector")),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="apps",
        version="v1",
        name="replicasets",
        kind="ReplicaSet",
        categories=("all",),
        short_names=("rs",),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    strategy=Strategy(generation=SPEC, first_generation=1, disabled=DISABLED_IN_TEMPLATE),
    validation=Validation(
        create=_create,
        update=in_order(_update, immutable_fields("spec", "selector")),
        subresources={"status": status_update(_STATUS)},
    ),
    warnings=warnings_of_kind("apps", "ReplicaSet", named=True),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Desired", type="integer"),
            Column(name="Current", type="integer"),
            Column(name="Ready", type="integer"),
            AGE_COLUMN,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults_table("io.k8s.api.apps.v1", {"ReplicaSetSpec": {"replicas": 1}}),
    internal_changes=INTERNAL_CHANGES_OF_TEMPLATE,
)

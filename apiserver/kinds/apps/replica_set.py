"""ReplicaSet, and the check of selector and template that a Deployment shares."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Resource
from mockube.apiserver.kinds.common.cells import selector_text
from mockube.apiserver.kinds.common.checks import all_of, field, non_negative
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import Validation, immutable_fields, in_order
from mockube.apiserver.kinds.core.pod import workloads
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.pod_template import options_from_old_workload, warnings_of_kind
from mockube.apiserver.kinds.core.pod.strategy import DISABLED_IN_TEMPLATE, EMPTIABLE_IN_TEMPLATE
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy

_NUMBERS: Final = all_of(field("replicas", non_negative), field("minReadySeconds", non_negative))


def check_selected_replicas(
    spec: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Check the selector and the template of a ReplicaSet or a Deployment."""
    yield from workloads.check_required_selector(spec, path, "deployment")
    selector, template = workloads.selector_of(spec), spec.get("template") or {}
    if selector is None:
        yield errors.invalid(path.child("selector"), spec.get("selector"), "invalid label selector")
    else:
        field_path = path.child("template")
        yield from workloads.check_selected_template(
            template, selector, field_path, kind="ReplicaSet", options=options
        )


def _check_spec(spec: ReadOnlyTree, options: PodValidationOptions) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _NUMBERS(spec, path)
    yield from check_selected_replicas(spec, path, options)


def _create(replica_set: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(replica_set.get("spec") or {}, STRICT)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(new.get("spec") or {}, options_from_old_workload(old))


_STATUS: Final = all_of(
    workloads.counts(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    ),
    workloads.AT_MOST_REPLICAS,
)  # fmt: skip


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
    strategy=Strategy(
        generation=SPEC, first_generation=1, disabled=DISABLED_IN_TEMPLATE, emptiable=EMPTIABLE_IN_TEMPLATE
    ),
    validation=Validation(
        create=_create,
        update=in_order(_update, immutable_fields("spec", "selector")),
        subresources={"status": workloads.status_update(_STATUS)},
    ),
    warnings=warnings_of_kind("apps", "ReplicaSet", named=True),
    printer=workloads.replica_set_printer(selector_text),
    defaults=defaults_table("io.k8s.api.apps.v1", {"ReplicaSetSpec": {"replicas": 1}}),
    internal_changes=INTERNAL_CHANGES_OF_TEMPLATE,
)

"""ReplicaSets."""

from collections.abc import Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.kind import Validation
from apiserver.validation.objects import together, unchanged
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import leniency_towards_template
from apiserver.validation.rules import Tree, every, field, non_negative
from apiserver.validation.workloads.counts import counts, no_more_than_field, status_update
from apiserver.validation.workloads.selected import (
    check_required_selector,
    check_selected_template,
    selector_of,
)

_NUMBERS: Final = every(field("replicas", non_negative), field("minReadySeconds", non_negative))


def check_selected_replicas(spec: Tree, path: Path, leniency: Leniency) -> Iterator[FieldError]:
    """The selector and the template of a ReplicaSet, or of a Deployment that makes such."""
    yield from check_required_selector(spec, path, "deployment")
    selector, template = selector_of(spec), spec.get("template") or {}
    if selector is None:
        yield errors.invalid(path.child("selector"), spec.get("selector"), "invalid label selector")
    else:
        at = path.child("template")
        yield from check_selected_template(template, selector, at, kind="ReplicaSet", leniency=leniency)


def _check_spec(spec: Tree, leniency: Leniency) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _NUMBERS(spec, path)
    yield from check_selected_replicas(spec, path, leniency)


def _create(replica_set: Tree) -> Iterator[FieldError]:
    return _check_spec(replica_set.get("spec") or {}, STRICT)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    was = (old.get("spec") or {}).get("template") or {}
    return _check_spec(new.get("spec") or {}, leniency_towards_template(was))


_STATUS: Final = every(
    counts(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    ),
    no_more_than_field(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", shown="status.replicas"
    ),
    no_more_than_field("readyReplicas", "availableReplicas", shown="readyReplicas"),
)  # fmt: skip

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "ReplicaSet"): Validation(
        create=_create,
        update=together(_update, unchanged("spec", "selector")),
        subresources={"status": status_update(_STATUS)},
    ),
}

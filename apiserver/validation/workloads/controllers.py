"""ReplicationControllers, whose selectors are labels."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.labels.selector import from_set
from apimachinery.paths import ROOT, Path
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import NameRule
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import leniency_towards_template
from apiserver.validation.rules import Tree, every, field, non_negative, required
from apiserver.validation.workloads.counts import counts, no_more_than_field, status_update
from apiserver.validation.workloads.selected import check_selected_template

_KIND: Final = "ReplicationController"
_SPEC: Final = ROOT.child("spec")


def _check_replicas(spec: Tree, path: Path) -> Iterator[FieldError]:
    if spec.get("replicas") is None:
        yield errors.required(path.child("replicas"))
    yield from field("replicas", non_negative)(spec, path)


_NUMBERS_AND_SELECTOR: Final = every(
    field("minReadySeconds", non_negative), required("selector"), _check_replicas
)


def _check_spec(spec: Tree, leniency: Leniency) -> Iterator[FieldError]:
    yield from _NUMBERS_AND_SELECTOR(spec, _SPEC)
    template, path = spec.get("template"), _SPEC.child("template")
    if template is None:
        yield errors.required(path)
        return
    selector = from_set(spec.get("selector") or {})
    yield from check_selected_template(template, selector, path, kind=_KIND, leniency=leniency)


def _create(controller: Tree) -> Iterator[FieldError]:
    return _check_spec(controller.get("spec") or {}, STRICT)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    was = (old.get("spec") or {}).get("template") or {}
    return _check_spec(new.get("spec") or {}, leniency_towards_template(was))


_STATUS: Final = every(
    counts("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
    no_more_than_field(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", shown="status.replicas"
    ),
    no_more_than_field("readyReplicas", "availableReplicas", shown="readyReplicas"),
)

_NAMES: Final = NameRule(partial(names.check_dns1123_subdomain, unit=names.BYTES), lambda _beginning: [])
"""Upstream checks these in a newer way than those of other kinds."""

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", _KIND): Validation(
        name=_NAMES,
        create=_create,
        update=_update,
        subresources={"status": status_update(_STATUS)},
    ),
}

"""ReplicationController, whose selector is a map of labels."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.labels.selector import from_set
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Replicas, Resource, SelectorForm
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.cells import labels_text
from mockube.apiserver.kinds.common.declared import DeclaredRules, valid
from mockube.apiserver.kinds.common.defaults import defaults_table, restore_template_labels, set_labels
from mockube.apiserver.kinds.common.objectmeta import NameRule
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import ORPHAN, SPEC, Strategy

from .pod import workloads
from .pod.context import STRICT, PodValidationOptions
from .pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from .pod.pod_template import is_new_generation, options_from_old_workload, pod_warnings_of
from .pod.strategy import DISABLED_IN_TEMPLATE, EMPTIABLE_IN_TEMPLATE
from .pod.warnings import IN_POD_NAMES, name_warnings

_KIND: Final = "ReplicationController"
_SPEC: Final = ROOT.child("spec")


def _check_replicas(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if spec.get("replicas") is None:
        yield errors.required(path.child("replicas"))
    yield from checks.field("replicas", checks.non_negative)(spec, path)


_NUMBERS_AND_SELECTOR: Final = checks.all_of(
    checks.field("minReadySeconds", checks.non_negative), checks.require("selector"), _check_replicas
)


def _check_spec(spec: ReadOnlyTree, options: PodValidationOptions) -> Iterator[FieldError]:
    yield from _NUMBERS_AND_SELECTOR(spec, _SPEC)
    template, path = spec.get("template"), _SPEC.child("template")
    if template is None:
        yield errors.required(path)
        return
    selector = from_set(spec.get("selector") or {})
    yield from workloads.check_selected_template(template, selector, path, kind=_KIND, options=options)


def _create(controller: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(controller.get("spec") or {}, STRICT)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(new.get("spec") or {}, options_from_old_workload(old))


_STATUS: Final = checks.all_of(
    workloads.counts(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"
    ),
    workloads.AT_MOST_REPLICAS,
)

_NAMES: Final = NameRule(partial(names.check_dns1123_subdomain, unit=names.BYTES), lambda _beginning: [])
"""Unlike for other kinds, the limit in messages is in bytes, and `generateName` is not checked."""


def _default_selector_and_labels(controller: Tree) -> None:
    """Set the selector and the labels to those of the template if they are missing."""
    spec = controller["spec"]
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        if "labels" not in controller["metadata"]:
            set_labels(controller["metadata"], labels)


_template_warnings: Final = pod_warnings_of(GroupKind("", "ReplicationController"))


def _warn_create(tree: ReadOnlyTree) -> Iterator[str]:
    yield from name_warnings(tree, IN_POD_NAMES)
    yield from _template_warnings(tree)


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    """Warn of the old template, as upstream does."""
    if is_new_generation(new, old):
        yield from _template_warnings(old)


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="replicationcontrollers",
        kind="ReplicationController",
        short_names=("rc",),
        categories=("all",),
        stored_at="controllers",
        selectable=(selectable("status.replicas", absent="0"),),
        replicas=Replicas(selector_form=SelectorForm.LABELS),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    strategy=Strategy(
        generation=SPEC,
        first_generation=1,
        disabled=DISABLED_IN_TEMPLATE,
        emptiable=EMPTIABLE_IN_TEMPLATE,
        dependents=ORPHAN,
        prepare_update={"status": restore_template_labels},
    ),
    validation=Validation(
        name=_NAMES,
        create=_create,
        update=_update,
        subresources={"status": workloads.status_update(_STATUS)},
        declared=DeclaredRules(valid("metadata.name"), valid("spec.replicas"), valid("spec.minReadySeconds")),
    ),
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=workloads.replica_set_printer(labels_text),
    defaults=defaults_table("io.k8s.api.core.v1", {"ReplicationController": _default_selector_and_labels}),
    internal_changes=INTERNAL_CHANGES_OF_TEMPLATE,
)

"""PodTemplate, and the path, validation and warnings of pod templates in all kinds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.cells import labels_text, names_and_images, part
from mockube.apiserver.kinds.common.objectmeta import check_annotations, check_labels
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import NAME, Column, Printer

from .context import STRICT, PodValidationOptions
from .defaults import name_account
from .options import options_from_old_pod
from .security import check_apparmor_agrees, check_seccomp_agrees
from .spec import check_pod_spec
from .strategy import disabled_in_template, emptiable_in
from .validation import check_pod_annotations
from .warnings import IN_POD_NAMES, name_warnings, template_warnings

_SPEC_TEMPLATE: Final = ("spec", "template")

TEMPLATES: Final[Mapping[GroupKind, tuple[str, ...]]] = MappingProxyType(
    {
        GroupKind("", "Pod"): (),
        GroupKind("", "PodTemplate"): ("template",),
        GroupKind("", "ReplicationController"): _SPEC_TEMPLATE,
        GroupKind("apps", "DaemonSet"): _SPEC_TEMPLATE,
        GroupKind("apps", "Deployment"): _SPEC_TEMPLATE,
        GroupKind("apps", "ReplicaSet"): _SPEC_TEMPLATE,
        GroupKind("apps", "StatefulSet"): _SPEC_TEMPLATE,
        GroupKind("batch", "CronJob"): ("spec", "jobTemplate", *_SPEC_TEMPLATE),
        GroupKind("batch", "Job"): _SPEC_TEMPLATE,
    }
)
"""By kind, the path of the struct with a pod's metadata and spec; that of a Pod is empty."""


def template(path: tuple[str, ...], tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod template at a path, or an empty tree."""
    for step in path:
        tree = tree.get(step) or {}
    return tree


def pod_warnings_of(kind: GroupKind) -> Callable[[ReadOnlyTree], list[str]]:
    """Return a function that returns the warnings about the pod template in an object of a kind."""
    steps = TEMPLATES[kind]
    path = ROOT.child(*steps)
    return lambda tree: template_warnings(template(steps, tree), path)


def is_new_generation(new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    return meta.generation(new) != meta.generation(old)


def warnings_of_kind(group: str, kind: str, *, named: bool) -> Warnings:
    """Return the warnings of a kind with a pod template: about the template, and about names if `named`."""
    pods = pod_warnings_of(GroupKind(group, kind))

    def create(tree: ReadOnlyTree) -> Iterator[str]:
        if named:
            yield from name_warnings(tree, IN_POD_NAMES)
        yield from pods(tree)

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
        if is_new_generation(new, old):
            yield from pods(new)

    return Warnings(create=create, update=update)


def options_from_old_template(old: ReadOnlyTree) -> PodValidationOptions:
    return options_from_old_pod(old.get("spec") or {}, old.get("metadata") or {})


def options_from_old_workload(old: ReadOnlyTree) -> PodValidationOptions:
    """Return the options for an update of an object whose spec has a template."""
    return options_from_old_template((old.get("spec") or {}).get("template") or {})


def check_template_metadata(
    template: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Check the metadata of a template. As upstream, paths of labels and annotations omit `metadata`."""
    metadata = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if labels := metadata.get("labels"):
        yield from check_labels(labels, path.child("labels"))
    if annotations:
        field_path = path.child("annotations")
        yield from check_annotations(annotations, field_path)
        yield from check_pod_annotations(annotations, template.get("spec") or {}, field_path, options)


def check_pod_template(
    template: ReadOnlyTree, path: Path, options: PodValidationOptions = STRICT
) -> Iterator[FieldError]:
    spec, field_path = template.get("spec") or {}, path.child("spec")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    yield from check_template_metadata(template, path, options)
    yield from check_pod_spec(spec, None, field_path, options)
    if annotations:
        yield from check_seccomp_agrees(annotations, spec, field_path)
        yield from check_apparmor_agrees(annotations, spec, field_path)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield errors.forbidden(field_path.child("ephemeralContainers"), detail)


_TEMPLATE: Final = ROOT.child("template")


def _check_new_template(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return check_pod_template(tree.get("template") or {}, _TEMPLATE)


def _check_changed_template(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    options = options_from_old_template(old.get("template") or {})
    return check_pod_template(new.get("template") or {}, _TEMPLATE, options)


def _cells(tree: Tree, _: datetime) -> list[Any]:
    template = part(tree, "template")
    names, images = names_and_images(template)
    return [meta.name(tree), names, images, labels_text(part(template, "metadata", "labels"))]


KIND: Final = Kind(
    resource=Resource(group="", version="v1", name="podtemplates", kind="PodTemplate"),
    strategy=Strategy(
        generation=(("template",),),
        first_generation=1,
        disabled=disabled_in_template("template"),
        emptiable=emptiable_in("template.spec"),
        returns_deleted=True,
    ),
    validation=Validation(create=_check_new_template, update=_check_changed_template),
    warnings=warnings_of_kind("", "PodTemplate", named=False),
    printer=Printer(
        columns=(NAME, Column(name="Containers"), Column(name="Images"), Column(name="Pod Labels")),
        cells=_cells,
    ),
    internal_changes=(partial(name_account, ("template", "spec")),),
)

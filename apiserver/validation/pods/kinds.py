"""The rules of Pod and PodTemplate."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import METADATA
from apiserver.validation.pods.annotations import check_pod_annotations
from apiserver.validation.pods.containers import check_trimmed_images
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.profiles import check_apparmor_agrees, check_seccomp_agrees
from apiserver.validation.pods.spec import check_pod_spec
from apiserver.validation.pods.template import check_pod_template, leniency_towards_template
from apiserver.validation.rules import Tree

_SPEC: Final = ROOT.child("spec")


def check_pod(pod: Tree, leniency: Leniency) -> Iterator[FieldError]:
    """What is checked of a pod's spec and annotations at every write of them."""
    spec = pod.get("spec") or {}
    yield from check_pod_annotations(meta.annotations(pod), spec, METADATA.child("annotations"), leniency)
    yield from check_pod_spec(spec, meta.metadata(pod), _SPEC, leniency)
    if not spec.get("serviceAccountName"):
        yield from _check_no_tokens(spec)
    yield from check_trimmed_images(spec, _SPEC)


def _check_no_tokens(spec: Tree) -> Iterator[FieldError]:
    for index, volume in enumerate(spec.get("volumes", ())):
        for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = _SPEC.child("volumes").index(index).child("projected", "sources").index(place)
                detail = "must not be specified when serviceAccountName is not set"
                yield errors.forbidden(at.child("serviceAccountToken"), detail)


def _check_new_pod(pod: Tree) -> Iterator[FieldError]:
    spec = pod.get("spec") or {}
    yield from check_pod(pod, STRICT)
    if spec.get("ephemeralContainers"):
        yield errors.forbidden(_SPEC.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield errors.forbidden(_SPEC.child("nodeName"), detail)
    yield from check_seccomp_agrees(meta.annotations(pod), spec, _SPEC)
    yield from check_apparmor_agrees(meta.annotations(pod), spec, _SPEC)


# --- PodTemplate

_TEMPLATE: Final = ROOT.child("template")


def _check_new_template(tree: Tree) -> Iterable[FieldError]:
    return check_pod_template(tree.get("template") or {}, _TEMPLATE)


def _check_changed_template(new: Tree, old: Tree) -> Iterable[FieldError]:
    leniency = leniency_towards_template(old.get("template") or {})
    return check_pod_template(new.get("template") or {}, _TEMPLATE, leniency)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Pod"): Validation(create=_check_new_pod),
    GroupKind("", "PodTemplate"): Validation(create=_check_new_template, update=_check_changed_template),
}

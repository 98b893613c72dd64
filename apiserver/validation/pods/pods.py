"""Whole pods: what is checked of a new one, and again at every change of its spec."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT
from apiserver.validation import objectmeta
from apiserver.validation.objectmeta import METADATA, SUBDOMAIN
from apiserver.validation.pods.annotations import check_annotation_changes, check_pod_annotations
from apiserver.validation.pods.containers import check_trimmed_images
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.precedents import leniency_towards, leniency_towards_annotations
from apiserver.validation.pods.profiles import check_apparmor_agrees, check_seccomp_agrees
from apiserver.validation.pods.spec import check_pod_spec
from apiserver.validation.rules import Tree

SPEC: Final = ROOT.child("spec")
NOWHERE: Final = ROOT.key("")
"""Where upstream says that something is wrong with all of a pod."""

_ANNOTATIONS: Final = METADATA.child("annotations")


def spec_of(pod: Tree) -> Tree:
    return pod.get("spec") or {}


def _check_pod(pod: Tree, leniency: Leniency) -> Iterator[FieldError]:
    spec = spec_of(pod)
    yield from check_pod_annotations(meta.annotations(pod), spec, _ANNOTATIONS, leniency)
    yield from check_pod_spec(spec, meta.metadata(pod), SPEC, leniency)
    if not spec.get("serviceAccountName"):
        yield from _check_no_tokens(spec)
    yield from check_trimmed_images(spec, SPEC)


def _check_no_tokens(spec: Tree) -> Iterator[FieldError]:
    for index, volume in enumerate(spec.get("volumes", ())):
        for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = SPEC.child("volumes").index(index).child("projected", "sources").index(place)
                detail = "must not be specified when serviceAccountName is not set"
                yield errors.forbidden(at.child("serviceAccountToken"), detail)


def check_new_pod(pod: Tree) -> Iterator[FieldError]:
    spec = spec_of(pod)
    yield from _check_pod(pod, STRICT)
    if spec.get("ephemeralContainers"):
        yield errors.forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield errors.forbidden(SPEC.child("nodeName"), detail)
    yield from check_seccomp_agrees(meta.annotations(pod), spec, SPEC)
    yield from check_apparmor_agrees(meta.annotations(pod), spec, SPEC)


def check_changed_pod(new: Tree, old: Tree) -> Iterator[FieldError]:
    """The new pod by itself: what it may not be, whatever it was."""
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    yield from _check_pod(new, leniency_towards(spec_of(old), meta.metadata(old)))


def check_changed_annotations(new: Tree, old: Tree) -> Iterator[FieldError]:
    annotations = meta.annotations(new)
    yield from check_annotation_changes(annotations, meta.annotations(old), _ANNOTATIONS)
    leniency = leniency_towards_annotations(spec_of(old), meta.metadata(old))
    yield from check_pod_annotations(annotations, spec_of(new), _ANNOTATIONS, leniency)

"""Templates of pods, in whatever carries one."""

from collections.abc import Iterator

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.labels import check_labels
from apiserver.validation.objectmeta import check_annotations
from apiserver.validation.pods.annotations import check_pod_annotations
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.precedents import leniency_towards
from apiserver.validation.pods.profiles import check_apparmor_agrees, check_seccomp_agrees
from apiserver.validation.pods.spec import check_pod_spec
from apiserver.validation.rules import Tree


def leniency_towards_template(old: Tree) -> Leniency:
    return leniency_towards(old.get("spec") or {}, old.get("metadata") or {})


def check_template_metadata(template: Tree, path: Path, leniency: Leniency) -> Iterator[FieldError]:
    """Upstream tells of a template's labels and annotations as if they were its own fields."""
    metadata = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    yield from check_labels(metadata.get("labels"), path.child("labels"))
    yield from check_annotations(annotations, path.child("annotations"))
    spec = template.get("spec") or {}
    yield from check_pod_annotations(annotations, spec, path.child("annotations"), leniency)


def check_pod_template(template: Tree, path: Path, leniency: Leniency = STRICT) -> Iterator[FieldError]:
    spec, at = template.get("spec") or {}, path.child("spec")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    yield from check_template_metadata(template, path, leniency)
    yield from check_pod_spec(spec, None, at, leniency)
    yield from check_seccomp_agrees(annotations, spec, at)
    yield from check_apparmor_agrees(annotations, spec, at)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield errors.forbidden(at.child("ephemeralContainers"), detail)

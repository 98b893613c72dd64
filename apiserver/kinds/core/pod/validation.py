"""Validation of new pods, of updates of pods and of their ephemeral containers, and of annotations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import errors, gotext, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.kinds.common import checks, objectmeta
from mockube.apiserver.kinds.common.internal import difference, internal
from mockube.apiserver.kinds.common.objectmeta import METADATA, SUBDOMAIN

from . import scheduling, security
from .containers import check_trimmed_image
from .context import STRICT, PodValidationOptions
from .options import (
    DELETION_COST,
    compares_taints,
    is_deletion_cost,
    options_from_old_annotations,
    options_from_old_pod,
)
from .spec import check_pod_spec

SPEC: Final = ROOT.child("spec")
NOWHERE: Final = ROOT.key("")
"""The path at which upstream reports errors of a whole pod."""

_ANNOTATIONS: Final = METADATA.child("annotations")


def spec_of(pod: ReadOnlyTree) -> ReadOnlyTree:
    return pod.get("spec") or {}


# --- new pods


def check_new_pod(pod: ReadOnlyTree) -> Iterator[FieldError]:
    spec = spec_of(pod)
    yield from _check_pod(pod, STRICT)
    if spec.get("ephemeralContainers"):
        yield errors.forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield errors.forbidden(SPEC.child("nodeName"), detail)
    if annotations := meta.annotations(pod):
        yield from security.check_seccomp_agrees(annotations, spec, SPEC)
        yield from security.check_apparmor_agrees(annotations, spec, SPEC)


def _check_pod(pod: ReadOnlyTree, options: PodValidationOptions) -> Iterator[FieldError]:
    spec = spec_of(pod)
    yield from check_pod_annotations(meta.annotations(pod), spec, _ANNOTATIONS, options)
    yield from check_pod_spec(spec, meta.metadata(pod), SPEC, options)
    if not spec.get("serviceAccountName"):
        yield from _check_no_tokens(spec)
    yield from _check_trimmed_images(spec, SPEC)


_check_trimmed_images: Final = checks.all_of(
    checks.optional("containers", checks.each_item(check_trimmed_image)),
    checks.optional("initContainers", checks.each_item(check_trimmed_image)),
)


def _check_no_tokens(spec: ReadOnlyTree) -> Iterator[FieldError]:
    for index, volume in enumerate(spec.get("volumes", ())):
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                item_path = SPEC.child("volumes").index(index).child("projected", "sources").index(position)
                detail = "must not be specified when serviceAccountName is not set"
                yield errors.forbidden(item_path.child("serviceAccountToken"), detail)


# --- updates


def check_changed_pod(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check an updated pod by itself, with the options of the old one."""
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    yield from _check_pod(new, options_from_old_pod(spec_of(old), meta.metadata(old)))


def check_changed_annotations(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    annotations = meta.annotations(new)
    yield from check_annotation_changes(annotations, meta.annotations(old), _ANNOTATIONS)
    options = options_from_old_annotations(spec_of(old), meta.metadata(old))
    yield from check_pod_annotations(annotations, spec_of(new), _ANNOTATIONS, options)


_CHANGEABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    yield from check_changed_pod(new, old)
    yield from check_changed_annotations(new, old)
    yield from _check_changed_spec(spec_of(new), spec_of(old))


def _check_changed_spec(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    for kind in ("containers", "initContainers"):
        containers, path = spec.get(kind) or (), SPEC.child(kind)
        if len(containers) != len(before.get(kind) or ()):
            yield errors.forbidden(path, "pod updates may not add or remove containers")
            return
        yield from _check_images(containers, path)
    path = SPEC.child("activeDeadlineSeconds")
    wrong_deadline = [*_check_deadline(spec.get("activeDeadlineSeconds"), before, path)]
    yield from wrong_deadline
    if wrong_deadline and "activeDeadlineSeconds" in spec:
        return
    yield from _check_added_tolerations(spec, before)
    yield from _check_removed_gates(spec, before)
    yield from _check_rest(spec, before)


def _check_images(containers: Sequence[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    for index, container in enumerate(containers):
        yield from checks.require("image")(container, path.index(index))
        yield from check_trimmed_image(container, path.index(index))


_DEADLINE: Final = checks.between(0, 2**31 - 1)


def _check_deadline(deadline: int | None, before: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check that the deadline is set or reduced, but not removed or increased."""
    old_deadline = before.get("activeDeadlineSeconds")
    if deadline is None:
        problem = "must not update from a positive integer to nil value"
        return () if old_deadline is None else (errors.invalid(path, None, problem),)
    if old_deadline is None or deadline <= old_deadline:
        return _DEADLINE(deadline, path)
    return [*_DEADLINE(deadline, path)] or [
        errors.invalid(path, deadline, "must be less than or equal to previous value")
    ]


def _without_seconds(toleration: ReadOnlyTree) -> bytes:
    return checks.canonical(
        {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
    )


def _check_added_tolerations(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterable[FieldError]:
    tolerations, path = spec.get("tolerations", ()), SPEC.child("tolerations")
    new_tolerations = {*map(_without_seconds, tolerations)}
    if any(
        _without_seconds(toleration) not in new_tolerations for toleration in before.get("tolerations", ())
    ):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return (errors.forbidden(path, detail),)
    return scheduling.check_tolerations(tolerations, path, compared=compares_taints(before))


def _check_removed_gates(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    path, old_gates = (
        SPEC.child("schedulingGates"),
        {*map(checks.canonical, before.get("schedulingGates", ()))},
    )
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        if checks.canonical(gate) not in old_gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield errors.forbidden(path.index(index).child("name"), detail)


def _check_rest(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that the fields without a check of their own are unchanged."""
    if spec == before:
        return
    expected = _as_if_unchanged(spec, before)
    if before.get("schedulingGates"):
        yield from _check_scheduling_directives(expected, before)
        expected = _with_old_directives(expected, before)
    if expected != before:
        found_difference = difference("core.PodSpec", before, expected)
        detail = f"pod updates may not change fields other than {_CHANGEABLE}\n{found_difference}"
        yield errors.forbidden(SPEC, detail)


_CHECKED_APART: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
"""The fields whose changes have a check of their own."""


def _as_if_unchanged(spec: ReadOnlyTree, before: ReadOnlyTree) -> ReadOnlyTree:
    """Return the spec with the old values of all mutable fields."""
    images = {
        kind: [
            checks.with_old_values(container, old_container, "image")
            for container, old_container in zip(spec[kind], before[kind], strict=True)
        ]
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    return {**checks.with_old_values(spec, before, *_CHECKED_APART), **images}


# --- updates of pods with scheduling gates

_AFFINITY: Final = SPEC.child("affinity", "nodeAffinity")
_TERM: Final = "core.NodeSelectorTerm"


def _check_scheduling_directives(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    selector, old_selector = spec.get("nodeSelector"), before.get("nodeSelector") or {}
    if not old_selector.items() <= (selector or {}).items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield errors.invalid(SPEC.child("nodeSelector"), selector, detail)
    yield from _check_terms(_terms(spec), _terms(before))


def _node_affinity(spec: ReadOnlyTree) -> Any:
    return (spec.get("affinity") or {}).get("nodeAffinity")


def _terms(spec: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    required = (_node_affinity(spec) or {}).get(scheduling.REQUIRED) or {}
    return required.get("nodeSelectorTerms") or ()


def _check_terms(terms: Sequence[ReadOnlyTree], before: Sequence[ReadOnlyTree]) -> Iterable[FieldError]:
    """Check that requirements were only added. Terms are alternatives, so none may be added or removed."""
    path = _AFFINITY.child(scheduling.REQUIRED, "nodeSelectorTerms")
    if before and len(terms) != len(before):
        value = [internal(_TERM, term) for term in terms] or None
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return (errors.invalid(path, value, detail),)
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        errors.invalid(path.index(index), internal(_TERM, term), detail)
        for index, (term, old_term) in enumerate(zip(terms, before, strict=False))
        if not _only_adds_requirements(term, old_term)
    ]


def _only_adds_requirements(term: ReadOnlyTree, before: ReadOnlyTree) -> bool:
    """Return whether a term only adds requirements. A term without requirements matches no node, so none may be added."""
    requirements, old_requirements = (
        [version.get(field) or [] for field in ("matchExpressions", "matchFields")]
        for version in (term, before)
    )
    if not any(old_requirements):
        return not any(requirements)
    return all(
        new_list[: len(old_list)] == old_list
        for new_list, old_list in zip(requirements, old_requirements, strict=True)
    )


def _with_old_directives(spec: ReadOnlyTree, before: ReadOnlyTree) -> ReadOnlyTree:
    """Return the spec with the old node selector and node affinity."""
    spec = checks.with_old_values(spec, before, "nodeSelector")
    if _node_affinity(spec) == _node_affinity(before):
        return spec
    affinity = checks.with_old_values(
        spec.get("affinity") or {}, before.get("affinity") or {}, "nodeAffinity"
    )
    if not affinity and before.get("affinity") is None:
        return checks.with_old_values(spec, before, "affinity")
    return {**spec, "affinity": affinity}


# --- updates of ephemeral containers

_EPHEMERAL_CONTAINERS: Final = SPEC.child("ephemeralContainers")


def check_ephemeral_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    if ANNOTATION_MIRROR_POD in meta.annotations(old):
        return (errors.forbidden(NOWHERE, "static pods do not support ephemeral containers"),)
    return [
        *check_changed_pod(new, old),
        *check_changed_annotations(new, old),
        *_check_existing_containers(spec_of(new), spec_of(old)),
    ]


def _check_existing_containers(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    now = {container.get("name", ""): container for container in spec.get("ephemeralContainers", ())}
    for container in before.get("ephemeralContainers", ()):
        name = container.get("name", "")
        subject = f"existing ephemeral containers {gotext.quote(name)}"
        if name not in now:
            yield errors.forbidden(_EPHEMERAL_CONTAINERS, f"{subject} may not be removed\n")
        elif now[name] != container:
            found_difference = difference("core.EphemeralContainer", container, now[name])
            yield errors.forbidden(_EPHEMERAL_CONTAINERS, f"{subject} may not be changed\n{found_difference}")


# --- annotations


def check_pod_annotations(
    annotations: Mapping[str, str], spec: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if not annotations:
        return
    if ANNOTATION_MIRROR_POD in annotations and not spec.get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        yield errors.invalid(path.key(ANNOTATION_MIRROR_POD), annotations[ANNOTATION_MIRROR_POD], problem)
    if text := annotations.get(scheduling.TOLERATIONS_ANNOTATION):
        yield from scheduling.check_annotated_tolerations(text, path, compared=options.comparisons)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (options.deletion_cost or is_deletion_cost(cost)):
        yield errors.invalid(path.key(DELETION_COST), cost, "must be a 32bit integer")
    yield from security.check_seccomp_annotations(annotations, path)
    yield from security.check_apparmor_annotations(annotations, spec, path)


_IMMUTABLE_ANNOTATIONS: Final = (
    (security.APPARMOR_OF_CONTAINER, "AppArmor annotations"),
    (ANNOTATION_MIRROR_POD, "mirror pod annotation"),
)
"""The prefixes of immutable annotations, with their descriptions in messages."""


def check_annotation_changes(
    new: Mapping[str, str], old: Mapping[str, str], path: Path
) -> Iterator[FieldError]:
    for key in [key for key in old if new.get(key) != old[key]]:
        yield from _check_immutable(key, path, "remove or update")
    for key in [key for key in new if key not in old]:
        yield from _check_immutable(key, path, "add")


def _check_immutable(key: str, path: Path, verb: str) -> Iterator[FieldError]:
    for start, description in _IMMUTABLE_ANNOTATIONS:
        if key.startswith(start):
            yield errors.forbidden(path.key(key), f"may not {verb} {description}")

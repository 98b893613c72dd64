"""Updates of pods: of a spec very little may change once there is a pod."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.differences import difference
from apiserver.validation.pods.containers import check_trimmed_image
from apiserver.validation.pods.gated import as_if_not_directed, check_directions
from apiserver.validation.pods.pods import SPEC, check_changed_annotations, check_changed_pod, spec_of
from apiserver.validation.pods.precedents import leniency_towards
from apiserver.validation.pods.tolerations import check_tolerations
from apiserver.validation.rules import Tree, as_before, between, required

_CHANGEABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: Tree, old: Tree) -> Iterator[FieldError]:
    yield from check_changed_pod(new, old)
    yield from check_changed_annotations(new, old)
    yield from _check_changed_spec(spec_of(new), spec_of(old))


def _check_changed_spec(spec: Tree, before: Tree) -> Iterator[FieldError]:
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


def _check_images(containers: Sequence[Tree], path: Path) -> Iterator[FieldError]:
    for index, container in enumerate(containers):
        yield from required("image")(container, path.index(index))
        yield from check_trimmed_image(container, path.index(index))


_DEADLINE: Final = between(0, 2**31 - 1)


def _check_deadline(deadline: int | None, before: Tree, path: Path) -> Iterable[FieldError]:
    """It may come nearer, and not go away."""
    was = before.get("activeDeadlineSeconds")
    if deadline is None:
        problem = "must not update from a positive integer to nil value"
        return () if was is None else (errors.invalid(path, None, problem),)
    if was is None or deadline <= was:
        return _DEADLINE(deadline, path)
    return [*_DEADLINE(deadline, path)] or [
        errors.invalid(path, deadline, "must be less than or equal to previous value")
    ]


def _without_seconds(toleration: Tree) -> Mapping[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _check_added_tolerations(spec: Tree, before: Tree) -> Iterable[FieldError]:
    tolerations, path = spec.get("tolerations", ()), SPEC.child("tolerations")
    there = [*map(_without_seconds, tolerations)]
    if any(_without_seconds(toleration) not in there for toleration in before.get("tolerations", ())):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return (errors.forbidden(path, detail),)
    return check_tolerations(tolerations, path, compared=leniency_towards(before, {}).comparisons)


def _check_removed_gates(spec: Tree, before: Tree) -> Iterator[FieldError]:
    path, had = SPEC.child("schedulingGates"), before.get("schedulingGates", ())
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        if gate not in had:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield errors.forbidden(path.index(index).child("name"), detail)


def _check_rest(spec: Tree, before: Tree) -> Iterator[FieldError]:
    """What was not told of yet must be as it was."""
    if spec == before:
        return
    expected = _as_if_unchanged(spec, before)
    if before.get("schedulingGates"):
        yield from check_directions(expected, before)
        expected = as_if_not_directed(expected, before)
    if expected != before:
        told = difference("core.PodSpec", before, expected)
        detail = f"pod updates may not change fields other than {_CHANGEABLE}\n{told}"
        yield errors.forbidden(SPEC, detail)


_CHECKED: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
"""What was told of if it is wrong how it changed."""


def _as_if_unchanged(spec: Tree, before: Tree) -> Tree:
    """The spec with all that may change as it was."""
    images = {
        kind: [
            as_before(container, was, "image")
            for container, was in zip(spec[kind], before[kind], strict=True)
        ]
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    return {**as_before(spec, before, *_CHECKED), **images}

"""Annotations that mean something for a pod."""

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.core.pod.context import PodValidationOptions
from mockube.apiserver.kinds.core.pod.scheduling import check_tolerations
from mockube.apiserver.kinds.core.pod.security import (
    APPARMOR_OF_CONTAINER,
    check_apparmor_annotations,
    check_seccomp_annotations,
)

MIRROR: Final = "kubernetes.io/config.mirror"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def is_deletion_cost(annotations: Mapping[str, str]) -> bool:
    """Whether the pod's deletion cost is a number, if there is one."""
    cost = annotations.get(_DELETION_COST)
    if cost is None:
        return True
    if cost.startswith("+") or (len(cost) > 1 and cost.startswith("0")):
        return False
    try:
        gotext.parse_int(cost, bits=32)
    except gotext.NumberError:
        return False
    return True


def check_pod_annotations(
    annotations: Mapping[str, str], spec: ReadOnlyTree, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if MIRROR in annotations and not spec.get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        yield errors.invalid(path.key(MIRROR), annotations[MIRROR], problem)
    if annotations.get(_TOLERATIONS):
        yield from _check_annotated_tolerations(annotations[_TOLERATIONS], path, options)
    if not (options.deletion_cost or is_deletion_cost(annotations)):
        yield errors.invalid(path.key(_DELETION_COST), annotations[_DELETION_COST], "must be a 32bit integer")
    yield from check_seccomp_annotations(annotations, path)
    yield from check_apparmor_annotations(annotations, spec, path)


def _check_annotated_tolerations(
    text: str, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    try:
        tolerations = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        yield errors.invalid(path, _TOLERATIONS, str(problem))
        return
    yield from check_tolerations(tolerations, path.child(_TOLERATIONS), compared=options.comparisons)


_FIXED: Final = (
    (APPARMOR_OF_CONTAINER, "AppArmor annotations"),
    (MIRROR, "mirror pod annotation"),
)
"""The prefixes of immutable annotations, with their descriptions in messages."""


def check_annotation_changes(
    new: Mapping[str, str], old: Mapping[str, str], path: Path
) -> Iterator[FieldError]:
    for key in [key for key in old if new.get(key) != old[key]]:
        yield from _check_fixed(key, path, "remove or update")
    for key in [key for key in new if key not in old]:
        yield from _check_fixed(key, path, "add")


def _check_fixed(key: str, path: Path, verb: str) -> Iterator[FieldError]:
    for start, description in _FIXED:
        if key.startswith(start):
            yield errors.forbidden(path.key(key), f"may not {verb} {description}")

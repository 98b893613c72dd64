"""Deployments."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.objects import together, unchanged
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import leniency_towards_template
from apiserver.validation.rules import Tree, every, field, non_negative
from apiserver.validation.workloads.counts import (
    check_collisions,
    counts,
    no_more_than_field,
    status_update,
)
from apiserver.validation.workloads.replica_sets import check_selected_replicas
from apiserver.validation.workloads.rolling import check_deployment

_RECREATE, _ROLLING_UPDATE = "Recreate", "RollingUpdate"


def _check_strategy(strategy: Tree, path: Path) -> Iterable[FieldError]:
    of_type, update = strategy.get("type", ""), strategy.get("rollingUpdate")
    at = path.child("rollingUpdate")
    if of_type not in (_RECREATE, _ROLLING_UPDATE):
        shown = internal("apps.DeploymentStrategy", strategy)
        return (errors.not_supported(path, shown, (_RECREATE, _ROLLING_UPDATE)),)
    if of_type == _ROLLING_UPDATE:
        if update is None:
            return (errors.required(at, "this should be defaulted and never be nil"),)
        return check_deployment(update, at)
    detail = f"may not be specified when strategy `type` is '{_RECREATE}'"
    return () if update is None else (errors.forbidden(at, detail),)


def _check_deadline(spec: Tree, path: Path) -> Iterator[FieldError]:
    """No Deployment makes progress before its pods can be ready."""
    seconds, path = spec.get("progressDeadlineSeconds"), path.child("progressDeadlineSeconds")
    if seconds is None:
        return
    yield from non_negative(seconds, path)
    if seconds <= spec.get("minReadySeconds", 0):
        yield errors.invalid(path, seconds, "must be greater than minReadySeconds")


_REPLICAS: Final = field("replicas", non_negative)
_REST: Final = every(
    field("strategy", _check_strategy, absent={}),
    field("minReadySeconds", non_negative),
    field("revisionHistoryLimit", non_negative),
    _check_deadline,
)


def _check_spec(spec: Tree, leniency: Leniency) -> Iterator[FieldError]:
    path = ROOT.child("spec")
    yield from _REPLICAS(spec, path)
    yield from check_selected_replicas(spec, path, leniency)
    yield from _REST(spec, path)


def _create(deployment: Tree) -> Iterator[FieldError]:
    return _check_spec(deployment.get("spec") or {}, STRICT)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    was = (old.get("spec") or {}).get("template") or {}
    return _check_spec(new.get("spec") or {}, leniency_towards_template(was))


_STATUS: Final = every(
    counts(
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    no_more_than_field(
        "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", shown="status.replicas"
    ),
    no_more_than_field("readyReplicas", "availableReplicas", shown="readyReplicas"),
)  # fmt: skip

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "Deployment"): Validation(
        create=_create,
        update=together(_update, unchanged("spec", "selector")),
        subresources={"status": together(status_update(_STATUS), check_collisions)},
    ),
}

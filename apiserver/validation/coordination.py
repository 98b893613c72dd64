"""Leases."""

from collections.abc import Iterable, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import Path
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_label_name
from apiserver.validation.objectmeta import SUBDOMAIN, with_any_finalizers
from apiserver.validation.objects import again, created
from apiserver.validation.rules import Tree, field, must, non_negative, one_of, optional, pointer


def _check_strategy(strategy: str, path: Path) -> Iterable[FieldError]:
    """Upstream names the field twice."""
    path = path.child("strategy")
    known = one_of("OldestEmulationVersion")
    return check_label_name(strategy, path) if "/" in strategy else known(strategy, path)


def _check_preferred_holder(spec: Tree, path: Path) -> Iterable[FieldError]:
    if not spec.get("preferredHolder") or spec.get("strategy"):
        return ()
    detail = "may only be specified if `strategy` is defined"
    return (errors.forbidden(path.child("preferredHolder"), detail),)


_CREATE: Final = created(
    field(
        "spec",
        pointer("leaseDurationSeconds", must(lambda seconds: seconds > 0, "must be greater than 0")),
        pointer("leaseTransitions", non_negative),
        optional("strategy", _check_strategy),
        _check_preferred_holder,
        absent={},
    )
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("coordination.k8s.io", "Lease"): Validation(
        name=with_any_finalizers(SUBDOMAIN), create=_CREATE, update=again(_CREATE)
    ),
}

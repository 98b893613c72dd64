"""Lease."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN, check_label_name, with_any_finalizers
from mockube.apiserver.kinds.common.validation import Validation, from_root, repeat_create_checks
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import DisabledFields, Gate, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer


def _check_strategy(strategy: str, path: Path) -> Iterable[FieldError]:
    """Check the strategy. As upstream's, the path contains the field twice."""
    path = path.child("strategy")
    check_choice = checks.one_of("OldestEmulationVersion")
    return check_label_name(strategy, path) if "/" in strategy else check_choice(strategy, path)


def _check_preferred_holder(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if not spec.get("preferredHolder") or spec.get("strategy"):
        return ()
    detail = "may only be specified if `strategy` is defined"
    return (errors.forbidden(path.child("preferredHolder"), detail),)


_CREATE: Final = from_root(
    checks.field(
        "spec",
        checks.pointer(
            "leaseDurationSeconds", checks.require_that(lambda seconds: seconds > 0, "must be greater than 0")
        ),
        checks.pointer("leaseTransitions", checks.non_negative),
        checks.optional("strategy", _check_strategy),
        _check_preferred_holder,
        absent={},
    )
)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "spec", "holderIdentity"), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(group="coordination.k8s.io", version="v1", name="leases", kind="Lease"),
    strategy=Strategy(
        create_on_update=True,
        unconditional_update=False,
        disabled=DisabledFields((Gate(("spec.strategy",)), Gate(("spec.preferredHolder",)))),
    ),
    validation=Validation(
        name=with_any_finalizers(SUBDOMAIN), create=_CREATE, update=repeat_create_checks(_CREATE)
    ),
    printer=Printer(columns=(NAME, Column(name="Holder"), AGE_COLUMN), cells=_cells),
)

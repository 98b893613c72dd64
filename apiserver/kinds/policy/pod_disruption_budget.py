"""PodDisruptionBudget."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import number, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.selectors import check_selector, check_selector_leniently
from mockube.apiserver.kinds.common.validation import Validation, from_root, get_struct, part
from mockube.apiserver.kinds.core.pod.workloads import check_amount, check_not_more_than_100_percent
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED_CONDITIONAL
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer


def _check_exclusive(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if spec.get("minAvailable") is None or spec.get("maxUnavailable") is None:
        return ()
    problem = "minAvailable and maxUnavailable cannot be both set"
    return (errors.invalid(path, internal("policy.PodDisruptionBudgetSpec", spec), problem),)


def _spec(selector: Check) -> Check:
    return checks.all_of(
        _check_exclusive,
        checks.pointer("minAvailable", check_amount, check_not_more_than_100_percent),
        checks.pointer("maxUnavailable", check_amount, check_not_more_than_100_percent),
        checks.pointer("selector", selector),
        checks.pointer("unhealthyPodEvictionPolicy", checks.one_of("AlwaysAllow", "IfHealthyBudget")),
    )


_STATUS: Final = checks.all_of(
    checks.field("conditions", check_conditions),
    *(
        checks.field(name, checks.non_negative)
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    ),
)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    path = ROOT.child("spec")
    old_is_invalid = any(check_selector(get_struct(old, "spec", "selector"), path))
    return _spec(check_selector_leniently if old_is_invalid else check_selector)(
        get_struct(new, "spec"), path
    )


def _cells(budget: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(budget),
        text(budget, "spec", "minAvailable", default="N/A"),
        text(budget, "spec", "maxUnavailable", default="N/A"),
        number(budget, "status", "disruptionsAllowed"),
        age(budget, now),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="policy",
        version="v1",
        name="poddisruptionbudgets",
        kind="PodDisruptionBudget",
        short_names=("pdb",),
        subresources=(STATUS,),
    ),
    strategy=COUNTED_CONDITIONAL,
    validation=Validation(
        metadata_first=False,
        create=from_root(checks.field("spec", _spec(check_selector), absent={})),
        update=_update,
        subresources={"status": part(_STATUS, "status")},
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Min Available"),
            Column(name="Max Unavailable"),
            Column(name="Allowed Disruptions", type="integer"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
)

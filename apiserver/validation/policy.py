"""PodDisruptionBudgets."""

from collections.abc import Iterable, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.conditions import check_conditions
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_selector, check_selector_leniently
from apiserver.validation.objects import created, part, within
from apiserver.validation.rules import Check, Tree, every, field, non_negative, one_of, pointer
from apiserver.validation.workloads.rolling import check_amount, check_not_over_all


def _check_one(spec: Tree, path: Path) -> Iterable[FieldError]:
    if spec.get("minAvailable") is None or spec.get("maxUnavailable") is None:
        return ()
    problem = "minAvailable and maxUnavailable cannot be both set"
    return (errors.invalid(path, internal("policy.PodDisruptionBudgetSpec", spec), problem),)


def _spec(selector: Check) -> Check:
    return every(
        _check_one,
        pointer("minAvailable", check_amount, check_not_over_all),
        pointer("maxUnavailable", check_amount, check_not_over_all),
        pointer("selector", selector),
        pointer("unhealthyPodEvictionPolicy", one_of("AlwaysAllow", "IfHealthyBudget")),
    )


_STATUS: Final = every(
    field("conditions", check_conditions),
    *(
        field(name, non_negative)
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    ),
)


def _update(new: Tree, old: Tree) -> Iterable[FieldError]:
    path = ROOT.child("spec")
    was_wrong = any(check_selector(within(old, "spec", "selector"), path))
    return _spec(check_selector_leniently if was_wrong else check_selector)(within(new, "spec"), path)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("policy", "PodDisruptionBudget"): Validation(
        metadata_first=False,
        create=created(field("spec", _spec(check_selector), absent={})),
        update=_update,
        subresources={"status": part(_STATUS, "status")},
    ),
}

"""ResourceQuota: limits for the objects and resources of a namespace, within scopes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells, checks, validation
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.resource_names import (
    check_amount,
    check_quota_name,
    is_standard_quota_resource_name,
)
from mockube.apiserver.kinds.common.selectors import NO_OPERATOR
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import RETURNS_DELETED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_POD_RESOURCES: Final = frozenset(
    {"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_SCOPES: Final[Mapping[str, frozenset[str]]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""Each scope, with the standard resources that it can limit."""

_CONFLICTS: Final = (frozenset({"BestEffort", "NotBestEffort"}), frozenset({"Terminating", "NotTerminating"}))
_ONLY_EXISTS: Final = _CONFLICTS[0] | _CONFLICTS[1] | {"CrossNamespacePodAffinity"}


def _check_amounts(amounts: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    for name, amount in (amounts or {}).items():
        yield from check_quota_name(name, path.key(name))
        yield from check_amount(name, amount, path.key(name))


def _resources_out_of_scope(spec: ReadOnlyTree) -> Mapping[str, int]:
    """Return for each scope how many standard resources have a limit that the scope cannot limit."""
    names = {name for name in spec.get("hard") or () if is_standard_quota_resource_name(name)}
    return {scope: len(names - scope_resources) for scope, scope_resources in _SCOPES.items()}


def _check_scopes(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    scopes = spec.get("scopes") or []
    path, out_of_scope = path.child("scopes"), _resources_out_of_scope(spec) if scopes else {}
    for scope in scopes:
        if scope not in _SCOPES:
            yield errors.invalid(path, scopes, "unsupported scope")
        for _ in range(out_of_scope.get(scope, 0)):
            yield errors.invalid(path, scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTS:
        if pair <= {*scopes}:
            yield errors.invalid(path, scopes, "conflicting scopes")


# --- scope selectors


def _check_operator(scope: str, operator: str, path: Path) -> Iterable[FieldError]:
    if scope not in _ONLY_EXISTS or operator == "Exists":
        return ()
    problem = (
        "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
        "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
    )
    return (errors.invalid(path, operator, problem),)


def _check_values(operator: str, values: list[str], path: Path) -> Iterable[FieldError]:
    if operator in ("In", "NotIn"):
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return () if values else (errors.required(path.child("values"), detail),)
    if operator in ("Exists", "DoesNotExist"):
        problem = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return (errors.invalid(path.child("values"), values, problem),) if values else ()
    return (errors.invalid(path.child("operator"), operator, NO_OPERATOR),)


def _check_scope_selector(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the selector. Paths in upstream's errors have no index of the requirement."""
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    requirements = selector.get("matchExpressions") or ()
    path, out_of_scope = path.child("scopeSelector", "matchExpressions"), _resources_out_of_scope(spec)
    for requirement in requirements:
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        if scope not in _SCOPES:
            yield errors.invalid(path.child("scopeName"), scope, "unsupported scope")
        for _ in range(out_of_scope.get(scope, 0)):
            yield errors.invalid(
                path, internal("core.ScopeSelector", selector), "unsupported scope applied to resource"
            )
        yield from _check_operator(scope, operator, path.child("operator"))
        yield from _check_values(operator, requirement.get("values") or [], path)
    for pair in _CONFLICTS:
        if pair <= {requirement.get("scopeName") for requirement in requirements}:
            yield errors.invalid(path, spec.get("scopes"), "conflicting scopes")


_SPEC: Final[Check] = checks.all_of(
    checks.field("hard", _check_amounts), _check_scopes, _check_scope_selector
)
_STATUS: Final[Check] = checks.all_of(
    checks.field("hard", _check_amounts), checks.field("used", _check_amounts)
)


def _check_same_scopes(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    scopes, old_scopes = (
        validation.get_struct(new, "spec").get("scopes"),
        validation.get_struct(old, "spec").get("scopes"),
    )
    if {*(scopes or ())} == {*(old_scopes or ())}:
        return ()
    return (errors.invalid(ROOT.child("spec", "scopes"), scopes, checks.IMMUTABLE),)


def _warn_create(quota: ReadOnlyTree) -> Iterator[str]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        requests, limits = f"requests.{name}", f"limits.{name}"
        if requests not in hard and name in {"cpu", "memory"}:
            requests = name
        if requests not in hard or limits not in hard:
            continue
        request, limit = quantity.from_json(hard[requests]), quantity.from_json(hard[limits])
        if request > limit:
            yield f"ResourceQuota {requests} ({request}) should be less than {limits} ({limit})"


def _cells(tree: Tree, now: datetime) -> list[Any]:
    status = cells.part(tree, "status")
    resources = sorted(cells.part(status, "hard") or ())
    limits = [resource for resource in resources if resource.startswith("limits.")]
    requests = [resource for resource in resources if not resource.startswith("limits.")]
    return [
        meta.name(tree),
        ", ".join(_used_cell(status, resource) for resource in requests),
        ", ".join(_used_cell(status, resource) for resource in limits),
        ages.age(tree, now),
    ]


def _used_cell(status: Any, resource: str) -> str:
    return f"{resource}: {cells.amount(status, 'used', resource)}/{cells.amount(status, 'hard', resource)}"


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="resourcequotas",
        kind="ResourceQuota",
        short_names=("quota",),
        subresources=(STATUS,),
    ),
    strategy=RETURNS_DELETED,
    validation=Validation(
        create=validation.from_root(checks.pointer("spec", _SPEC), checks.pointer("status", _STATUS)),
        update=validation.in_order(validation.part(_SPEC, "spec"), _check_same_scopes),
        subresources={"status": validation.part(_STATUS, "status")},
    ),
    warnings=Warnings(create=_warn_create),
    printer=Printer(columns=(NAME, Column(name="Request"), Column(name="Limit"), AGE_COLUMN), cells=_cells),
)

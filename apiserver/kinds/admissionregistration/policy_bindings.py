"""ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import items, part, text
from mockube.apiserver.kinds.common.declared import NO_RULES, DeclaredRules, required
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.validation import NO_CHECKS, Create, Validation, as_created, from_root
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED_CONDITIONAL
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import matching

_EXCLUSIVE: Final = "name and selector are mutually exclusive"


def _check_param_ref(reference: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name, selector = reference.get("name"), reference.get("selector")
    if name:
        yield from checks.report(names.check_path_segment_name)(name, path.child("name"))
    if name and selector is not None:
        yield errors.forbidden(path.child("name"), _EXCLUSIVE)
    yield from checks.pointer("selector", check_selector)(reference, path)
    if name and selector is not None:
        yield errors.forbidden(path.child("selector"), _EXCLUSIVE)
    if not name and selector is None:
        yield errors.required(path, "one of name or selector must be specified")
    yield from checks.require("parameterNotFoundAction", checks.one_of("Deny", "Allow"))(reference, path)


def _check_actions(actions: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, action in enumerate(actions or ()):
        yield from checks.one_of("Audit", "Deny", "Warn")(action, path.index(index))
        if action in seen:
            yield errors.duplicate(path.index(index), action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        reason = "repeating the same validation failure information in the API response and headers serves no purpose"
        yield errors.invalid(path, actions, f"must not contain both Deny and Warn ({reason})")
    if not seen:
        yield errors.required(path, "at least one validation action is required")


def _check_resources(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check matchResources. Upstream misspells the field in its messages."""
    resources = spec.get("matchResources")
    return (
        () if resources is None else matching.check_match_resources(resources, path.child("matchResources"))
    )


_SPEC: Final = checks.all_of(
    checks.require("policyName", checks.report(names.check_dns1123_subdomain)),
    checks.pointer("paramRef", _check_param_ref),
    _check_resources,
)
_CREATE_VALIDATING: Final = from_root(
    checks.field("spec", _SPEC, checks.field("validationActions", _check_actions), absent={})
)
_CREATE_MUTATING: Final = from_root(
    checks.field(
        "spec", _SPEC, checks.pointer("matchResources", matching.check_mutating_operations), absent={}
    )
)


def _validation(create: Create, declared: DeclaredRules = NO_RULES) -> Validation:
    return Validation(
        repeated_checks=NO_CHECKS,
        name=matching.NAMES,
        create=matching.reserved_name_check(create),
        update=as_created(create, matching.NAMES, namespaced=False),
        declared=declared,
    )


# --- columns


def _cells(binding: Tree, now: datetime) -> list[Any]:
    return [meta.name(binding), text(binding, "spec", "policyName"), _param_ref(binding), age(binding, now)]


def _param_ref(binding: Tree) -> str:
    """Return the parameter's namespace (`*` if it has none) and name; else the selector of parameters."""
    reference = part(binding, "spec", "paramRef")
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = part(reference, "selector")
    return "<unset>" if selector is None else _go_selector(selector)


def _go_selector(selector: Any) -> str:
    """Return the selector as Go prints the struct."""
    labels = part(selector, "matchLabels") or {}
    pairs = "".join(f"{key}: {value}," for key, value in sorted(labels.items()))
    requirements = "".join(map(_go_requirement, items(selector, "matchExpressions")))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def _go_requirement(requirement: Any) -> str:
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = " ".join(items(requirement, "values"))
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"


_PRINTER: Final = Printer(
    columns=(NAME, Column(name="PolicyName"), Column(name="ParamRef"), AGE_COLUMN), cells=_cells
)


MUTATING_ADMISSION_POLICY_BINDING: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="mutatingadmissionpolicybindings",
        kind="MutatingAdmissionPolicyBinding",
        namespaced=False,
        categories=("api-extensions",),
    ),
    strategy=COUNTED_CONDITIONAL,
    validation=_validation(_CREATE_MUTATING),
    warnings=matching.NAME_WARNINGS,
    printer=_PRINTER,
)

VALIDATING_ADMISSION_POLICY_BINDING: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="validatingadmissionpolicybindings",
        kind="ValidatingAdmissionPolicyBinding",
        namespaced=False,
        categories=("api-extensions",),
    ),
    strategy=COUNTED_CONDITIONAL,
    validation=_validation(
        _CREATE_VALIDATING, DeclaredRules(required("spec.policyName"), required("spec.validationActions"))
    ),
    warnings=matching.NAME_WARNINGS,
    printer=_PRINTER,
)

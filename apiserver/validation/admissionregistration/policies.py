"""Admission policies and their bindings. Expressions are not looked into."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, meta, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.admissionregistration.matching import (
    check_failure_policy,
    check_match_conditions,
    check_match_resources,
    expression,
)
from apiserver.validation.conditions import check_conditions
from apiserver.validation.kind import Create, Validation
from apiserver.validation.labels import check_label_name, check_selector
from apiserver.validation.objectmeta import SUBDOMAIN, with_any_finalizers
from apiserver.validation.objects import as_created, created, part, within
from apiserver.validation.rules import (
    Check,
    Tree,
    each,
    every,
    field,
    one_of,
    optional,
    pointer,
    required,
    valid,
)

_GROUP: Final = "admissionregistration.k8s.io"
_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)


# --- parameters


def _check_version(version: str, path: Path) -> Iterator[FieldError]:
    if version.count("/") > 1:
        yield errors.invalid(path, version, f"unexpected GroupVersion string: {version}")
        return
    group, _, name = version.rpartition("/")
    problems = names.check_dns1123_subdomain(group) if group else []
    if problems:
        yield errors.invalid(path, group, ",".join(problems))
    if not name:
        yield errors.invalid(path, version, "version must be specified")
        return
    problems = names.check_dns1035_label(name)
    if problems:
        yield errors.invalid(path, name, ",".join(problems))


def _check_kind(kind: str, path: Path) -> Iterable[FieldError]:
    problems = names.check_dns1035_label(kind.lower())
    if not problems:
        return ()
    problem = f"may have mixed case, but should otherwise match: {','.join(problems)}"
    return (errors.invalid(path, kind, problem),)


_PARAM_KIND: Final = every(required("apiVersion", _check_version), required("kind", _check_kind))

_EXCLUSIVE: Final = "name and selector are mutually exclusive"


def _check_param_ref(reference: Tree, path: Path) -> Iterator[FieldError]:
    name, selector = reference.get("name"), reference.get("selector")
    if name:
        yield from valid(names.check_path_segment_name)(name, path.child("name"))
    if name and selector is not None:
        yield errors.forbidden(path.child("name"), _EXCLUSIVE)
    yield from pointer("selector", check_selector)(reference, path)
    if name and selector is not None:
        yield errors.forbidden(path.child("selector"), _EXCLUSIVE)
    if not name and selector is None:
        yield errors.required(path, "one of name or selector must be specified")
    yield from required("parameterNotFoundAction", one_of("Allow", "Deny"))(reference, path)


# --- what policies share


def _check_some_rules(constraints: Tree, path: Path) -> Iterable[FieldError]:
    """A rule is needed to tell types."""
    yield from check_match_resources(constraints, path)
    yield from required("resourceRules")(constraints, path)


def _check_constraints(spec: Tree, path: Path) -> Iterable[FieldError]:
    constraints, path = spec.get("matchConstraints"), path.child("matchConstraints")
    return (errors.required(path),) if constraints is None else _check_some_rules(constraints, path)


def _check_variable_name(variable: Tree, path: Path) -> Iterable[FieldError]:
    if variable.get("name", "").strip():
        return ()
    return (errors.required(path.child("name"), "name is not specified"),)


_NO_EXPRESSION: Final = "expression is not specified"
_VARIABLE: Final = every(_check_variable_name, expression(_NO_EXPRESSION))

_COMMON: Final = every(
    required("failurePolicy", check_failure_policy),
    pointer("paramKind", _PARAM_KIND),
    _check_constraints,
    field("matchConditions", check_match_conditions),
    field("variables", each(_VARIABLE)),
)


# --- ValidatingAdmissionPolicy

_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024


def _not_blank(name: str, problem: str) -> Check:
    def check(tree: Tree, path: Path) -> Iterable[FieldError]:
        text = tree.get(name)
        return (errors.invalid(path.child(name), text, problem),) if text and not text.strip() else ()

    return check


def _check_one_line(validation: Tree, path: Path) -> Iterable[FieldError]:
    message = validation.get("message", "")
    if not {"\n", "\r"} & {*message.strip()}:
        return ()
    return (errors.invalid(path.child("message"), message, "message must not contain line breaks"),)


_VALIDATION: Final = every(
    expression(_NO_EXPRESSION),
    _not_blank("messageExpression", "must be non-empty if specified"),
    _not_blank("message", "message must be non-empty if specified"),
    _check_one_line,
    pointer("reason", one_of("Forbidden", "Invalid", "RequestEntityTooLarge")),
)


def _check_value(annotation: Tree, path: Path) -> Iterable[FieldError]:
    value, path = annotation.get("valueExpression", "").strip(), path.child("valueExpression")
    if not value:
        return (errors.required(path, "valueExpression is not specified"),)
    if len(value.encode()) > _LONGEST_VALUE:
        return (errors.required(path, f"must not exceed {_LONGEST_VALUE} bytes in length"),)
    return ()


def _check_annotations(annotations: Sequence[Tree], policy: str, path: Path) -> Iterator[FieldError]:
    """A key is shown to the world under the policy's name."""
    if len(annotations) > _MOST_ANNOTATIONS:
        problem = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield errors.invalid(path, annotations, problem)
    seen = set()
    for index, annotation in enumerate(annotations):
        key, at = annotation.get("key", ""), path.index(index)
        if policy:
            yield from check_label_name(f"{policy}/{key}", at.child("key"))
        else:
            yield errors.invalid(at.child("key"), key, "requires metadata.name be non-empty")
        yield from _check_value(annotation, at)
        if key in seen:
            yield errors.duplicate(at.child("key"), key)
        seen.add(key)


def _create_validating(tree: Tree) -> Iterator[FieldError]:
    spec, path = within(tree, "spec"), ROOT.child("spec")
    yield from _COMMON(spec, path)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        yield errors.required(path.child("validations"), _NOTHING)
        yield errors.required(path.child("auditAnnotations"), _NOTHING)
    yield from each(_VALIDATION)(validations, path.child("validations"))
    yield from _check_annotations(annotations, meta.name(tree), path.child("auditAnnotations"))


# --- MutatingAdmissionPolicy


def _patch(name: str) -> Check:
    def check(mutation: Tree, path: Path) -> Iterable[FieldError]:
        patch = mutation.get(name)
        if patch is None:
            return (errors.required(path.child(name)),)
        return expression(_NO_EXPRESSION)(patch, path.child(name))

    return check


_PATCHES: Final[Mapping[str, Check]] = {
    "ApplyConfiguration": _patch("applyConfiguration"),
    "JSONPatch": _patch("jsonPatch"),
}


def _check_mutation(mutation: Tree, path: Path) -> Iterable[FieldError]:
    kind = mutation.get("patchType", "")
    if kind in _PATCHES:
        return _PATCHES[kind](mutation, path)
    return required("patchType", one_of(*_PATCHES))(mutation, path)


_MUTATING: Final = created(
    field(
        "spec",
        _COMMON,
        required("mutations", each(_check_mutation), detail="mutations must contain at least one item"),
        required("reinvocationPolicy", one_of("IfNeeded", "Never")),
        absent={},
    )
)


# --- bindings


def _check_actions(actions: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, action in enumerate(actions or ()):
        yield from one_of("Audit", "Deny", "Warn")(action, path.index(index))
        if action in seen:
            yield errors.duplicate(path.index(index), action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        reason = "repeating the same validation failure information in the API response and headers serves no purpose"
        yield errors.invalid(path, actions, f"must not contain both Deny and Warn ({reason})")
    if not seen:
        yield errors.required(path, "at least one validation action is required")


def _check_resources(spec: Tree, path: Path) -> Iterable[FieldError]:
    """Upstream misspells the field."""
    resources = spec.get("matchResources")
    return () if resources is None else check_match_resources(resources, path.child("matchResouces"))


_BINDING: Final = every(
    required("policyName", _SUBDOMAIN), pointer("paramRef", _check_param_ref), _check_resources
)
_VALIDATING_BINDING: Final = created(
    field("spec", _BINDING, field("validationActions", _check_actions), absent={})
)
_MUTATING_BINDING: Final = created(field("spec", _BINDING, absent={}))

_STATUS: Final = part(optional("conditions", check_conditions), "status")


_NAMES: Final = with_any_finalizers(SUBDOMAIN)


def _validation(create: Create) -> Validation:
    return Validation(name=_NAMES, create=create, update=as_created(create, _NAMES, namespaced=False))


def _with_status(create: Create) -> Validation:
    update = as_created(create, _NAMES, namespaced=False)
    return Validation(name=_NAMES, create=create, update=update, subresources={"status": _STATUS})


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind(_GROUP, "ValidatingAdmissionPolicy"): _with_status(_create_validating),
    GroupKind(_GROUP, "ValidatingAdmissionPolicyBinding"): _validation(_VALIDATING_BINDING),
    GroupKind(_GROUP, "MutatingAdmissionPolicy"): _validation(_MUTATING),
    GroupKind(_GROUP, "MutatingAdmissionPolicyBinding"): _validation(_MUTATING_BINDING),
}

"""Parts that ValidatingAdmissionPolicy and MutatingAdmissionPolicy share: parameters, constraints, variables, and columns."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.admission_expressions import BadExpression, Compiler, OptionalVariables
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.cel.parser import RESERVED
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import count, part
from mockube.apiserver.kinds.common.checks import Check, all_of, pointer, require
from mockube.apiserver.kinds.common.validation import NO_CHECKS, Create, Update, Validation, as_created

from . import matching

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


_PARAM_KIND: Final = all_of(require("apiVersion", _check_version), require("kind", _check_kind))


# --- the spec


def _check_required_rules(constraints: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Require rules: the kinds that they match determine the types in expressions."""
    yield from matching.check_match_resources(constraints, path)
    yield from require("resourceRules")(constraints, path)


def _check_constraints(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    constraints, path = spec.get("matchConstraints"), path.child("matchConstraints")
    return (errors.required(path),) if constraints is None else _check_required_rules(constraints, path)


NO_EXPRESSION: Final = "expression is not specified"
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")


def _check_variable_name(variable: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    name = variable.get("name", "")
    if not name.strip():
        return (errors.required(path.child("name"), "name is not specified"),)
    if not _IDENTIFIER.fullmatch(name) or name in RESERVED:
        return (errors.invalid(path.child("name"), name, "must be a valid CEL identifier"),)
    return ()


def _check_variable(
    variable: ReadOnlyTree, path: Path, compiler: Compiler, optional_variables: OptionalVariables
) -> Iterator[FieldError]:
    yield from _check_variable_name(variable, path)
    text, field_path = variable.get("expression", ""), path.child("expression")
    if not text.strip():
        yield errors.required(field_path, NO_EXPRESSION)
        return
    try:
        compiler.add_variable(variable.get("name", ""), text, optional_variables)
    except BadExpression as error:
        yield error.field_error(field_path, text)


def _check_failure_policy(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the policy. Unlike for most fields, the errors of an empty and of a missing value differ."""
    field_path, value = path.child("failurePolicy"), spec.get("failurePolicy")
    return (
        (errors.required(field_path),) if value is None else matching.check_failure_policy(value, field_path)
    )


_COMMON: Final = all_of(
    _check_failure_policy,
    pointer("paramKind", _PARAM_KIND),
    _check_constraints,
)


def policy_compiler(spec: ReadOnlyTree, language: Language = FULL_LANGUAGE) -> Compiler:
    return Compiler(has_variables=bool(spec.get("variables")), language=language)


def check_policy_spec(
    spec: ReadOnlyTree, path: Path, compiler: Compiler, check_constraints: Check | None = None
) -> Iterator[FieldError]:
    """Check the fields that both kinds of policies have, and add the variables to the compiler."""
    yield from _COMMON(spec, path)
    if check_constraints:
        yield from pointer("matchConstraints", check_constraints)(spec, path)
    has_params = spec.get("paramKind") is not None
    conditions, field_path = spec.get("matchConditions"), path.child("matchConditions")
    yield from matching.check_match_conditions(
        conditions, field_path, has_params=has_params, language=compiler.language
    )
    for index, variable in enumerate(spec.get("variables") or ()):
        field_path = path.child("variables").index(index)
        yield from _check_variable(variable, field_path, compiler, OptionalVariables(params=has_params))


def policy_validation(create: Create, subresources: Mapping[str, Update] | None = None) -> Validation:
    update = as_created(create, matching.NAMES, namespaced=False)
    return Validation(
        repeated_checks=NO_CHECKS,
        silent=frozenset({"status"}),
        name=matching.NAMES,
        create=matching.reserved_name_check(create),
        update=update,
        subresources=subresources or {},
    )


# --- columns


def policy_cells(rules: str, policy: Tree, now: datetime) -> list[Any]:
    """Return the cells of a policy; `rules` is the field of the spec whose items are counted."""
    return [meta.name(policy), count(policy, "spec", rules), _param_kind(policy), age(policy, now)]


def _param_kind(policy: Tree) -> str:
    kind = part(policy, "spec", "paramKind")
    return "<unset>" if kind is None else f"{meta.api_version(kind)}/{meta.kind(kind)}"

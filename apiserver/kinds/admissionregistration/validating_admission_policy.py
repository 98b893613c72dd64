"""ValidatingAdmissionPolicy."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from mockube.apimachinery import errors, jsonpath, meta
from mockube.apimachinery.admission_expressions import BOOL, TEXT, TEXT_OR_NULL, Compiler, OptionalVariables
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.validation import Validation, get_struct, part
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import policy_specs
from .matching import NAME_WARNINGS, check_compiled

_EMPTY_POLICY: Final = "validations or auditAnnotations must contain at least one item"
_MAX_ANNOTATIONS: Final = 20
_MAX_VALUE_LENGTH: Final = 5 * 1024


def _not_blank(name: str, problem: str) -> Check:
    def check(tree: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        text = tree.get(name)
        return (errors.invalid(path.child(name), text, problem),) if text and not text.strip() else ()

    return check


def _check_one_line(validation: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    message = validation.get("message", "")
    if not {"\n", "\r"} & {*message.strip()}:
        return ()
    return (errors.invalid(path.child("message"), message, "must not contain line breaks"),)


_MESSAGE_AND_REASON: Final = checks.all_of(
    _not_blank("message", "must be non-empty if specified"),
    _check_one_line,
    checks.pointer("reason", checks.one_of("Forbidden", "Invalid", "RequestEntityTooLarge")),
)
_MESSAGE_EXPRESSION: Final = _not_blank("messageExpression", "must be non-empty if specified")


def _check_validation(
    validation: ReadOnlyTree, path: Path, compiler: Compiler, *, has_params: bool
) -> Iterator[FieldError]:
    text, message = validation.get("expression", ""), validation.get("messageExpression", "")
    if not text.strip():
        yield errors.required(path.child("expression"), policy_specs.NO_EXPRESSION)
    else:
        yield from check_compiled(
            compiler, text, path.child("expression"), BOOL, OptionalVariables(params=has_params)
        )
    yield from _MESSAGE_EXPRESSION(validation, path)
    if message.strip():
        optional_variables = OptionalVariables(params=has_params, authorizer=False)
        yield from check_compiled(
            compiler, message, path.child("messageExpression"), TEXT, optional_variables
        )
    yield from _MESSAGE_AND_REASON(validation, path)


def _check_value(
    annotation: ReadOnlyTree, path: Path, compiler: Compiler, optional_variables: OptionalVariables
) -> Iterable[FieldError]:
    value, path = annotation.get("valueExpression", "").strip(), path.child("valueExpression")
    if not value:
        return (errors.required(path, "valueExpression is not specified"),)
    if len(value.encode()) > _MAX_VALUE_LENGTH:
        return (errors.required(path, f"must not exceed {_MAX_VALUE_LENGTH} bytes in length"),)
    return check_compiled(compiler, value, path, TEXT_OR_NULL, optional_variables)


def _check_annotations(
    annotations: Sequence[ReadOnlyTree],
    policy: str,
    path: Path,
    compiler: Compiler,
    optional_variables: OptionalVariables,
) -> Iterator[FieldError]:
    """Check the annotations. In audit events, the policy's name is the prefix of each key."""
    if len(annotations) > _MAX_ANNOTATIONS:
        problem = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        yield errors.invalid(path, annotations, problem)
    seen = set()
    for index, annotation in enumerate(annotations):
        key, annotation_path = annotation.get("key", ""), path.index(index)
        if policy:
            yield from check_label_name(f"{policy}/{key}", annotation_path.child("key"))
        else:
            yield errors.invalid(annotation_path.child("key"), key, "requires metadata.name be non-empty")
        yield from _check_value(annotation, annotation_path, compiler, optional_variables)
        if key in seen:
            yield errors.duplicate(annotation_path.child("key"), key)
        seen.add(key)


def _create(tree: ReadOnlyTree, language: Language) -> Iterator[FieldError]:
    spec, path = get_struct(tree, "spec"), ROOT.child("spec")
    compiler = policy_specs.policy_compiler(spec, language)
    yield from policy_specs.check_policy_spec(spec, path, compiler)
    has_params = spec.get("paramKind") is not None
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        yield errors.required(path.child("validations"), _EMPTY_POLICY)
        yield errors.required(path.child("auditAnnotations"), _EMPTY_POLICY)
    for index, validation in enumerate(validations):
        field_path = path.child("validations").index(index)
        yield from _check_validation(validation, field_path, compiler, has_params=has_params)
    field_path, optional_variables = path.child("auditAnnotations"), OptionalVariables(params=has_params)
    yield from _check_annotations(annotations, meta.name(tree), field_path, compiler, optional_variables)


# --- status


def _check_field_ref(text: str, path: Path) -> Iterable[FieldError]:
    field_ref = text.strip()
    if not field_ref:
        return (errors.required(path),)
    try:
        jsonpath.parse(field_ref)
    except jsonpath.JSONPathError as error:
        return (errors.invalid(path, field_ref, f"invalid JSONPath: {error}"),)
    return ()


_TYPE_CHECKING: Final = checks.field(
    "expressionWarnings",
    checks.each_item(
        checks.all_of(checks.require("warning"), checks.field("fieldRef", _check_field_ref, absent=""))
    ),
)
_update_status: Final = part(
    checks.all_of(
        checks.pointer("typeChecking", _TYPE_CHECKING), checks.optional("conditions", check_conditions)
    ),
    "status",
)


def validation(language: Language = FULL_LANGUAGE) -> Validation:
    """Return the validation of policies, with the expressions of a CEL version."""
    return policy_specs.policy_validation(partial(_create, language=language), {"status": _update_status})


KIND: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="validatingadmissionpolicies",
        kind="ValidatingAdmissionPolicy",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
    ),
    strategy=Strategy(
        generation=SPEC,
        first_generation=1,
        created_by_apply=frozenset({"status"}),
        unconditional_update=False,
        resets=STATUS_ALONE,
    ),
    defaults=defaults_table(
        "io.k8s.api.admissionregistration.v1", {"ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"}}
    ),
    validation=validation(),
    warnings=NAME_WARNINGS,
    printer=Printer(
        columns=(NAME, Column(name="Validations", type="integer"), Column(name="ParamKind"), AGE_COLUMN),
        cells=partial(policy_specs.policy_cells, "validations"),
    ),
)

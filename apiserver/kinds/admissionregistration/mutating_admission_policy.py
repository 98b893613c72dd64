"""MutatingAdmissionPolicy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from mockube.apimachinery import errors
from mockube.apimachinery.admission_expressions import JSON_PATCHES, OBJECT, Compiler, OptionalVariables
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.checks import field, one_of, require
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import from_root
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED_CONDITIONAL
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import policy_specs
from .matching import NAME_WARNINGS, check_compiled, check_mutating_operations


class _Patch(NamedTuple):
    """A type of patch: the field of its expression, and the types that the expression may return."""

    type: str
    name: str
    returns: Sequence[Type]


_PATCHES: Final[Mapping[str, _Patch]] = {
    patch.type: patch
    for patch in (
        _Patch("ApplyConfiguration", "applyConfiguration", OBJECT),
        _Patch("JSONPatch", "jsonPatch", JSON_PATCHES),
    )
}


def _check_mutation(
    mutation: ReadOnlyTree, path: Path, compiler: Compiler, optional_variables: OptionalVariables
) -> Iterable[FieldError]:
    patch = _PATCHES.get(mutation.get("patchType", ""))
    if patch is None:
        return require("patchType", one_of(*_PATCHES))(mutation, path)
    return (
        *_check_patch(mutation.get(patch.name), path.child(patch.name), patch, compiler, optional_variables),
        *_check_other_patches(mutation, path, patch),
    )


def _check_patch(
    mutation: ReadOnlyTree | None,
    path: Path,
    patch: _Patch,
    compiler: Compiler,
    optional_variables: OptionalVariables,
) -> Iterable[FieldError]:
    if mutation is None:
        return (errors.required(path, f"must be specified when patchType is {patch.type}"),)
    text, field_path = mutation.get("expression", "").strip(), path.child("expression")
    if not text:
        return (errors.required(field_path),)
    return check_compiled(compiler, text, field_path, patch.returns, optional_variables)


def _check_other_patches(mutation: ReadOnlyTree, path: Path, patch: _Patch) -> Iterator[FieldError]:
    problem = f"must not be specified when patchType is {patch.type}"
    for other in _PATCHES.values():
        if other is not patch and mutation.get(other.name) is not None:
            yield errors.invalid(path.child(other.name), f"{{{other.name}}}", problem)


def _check_spec(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    compiler = policy_specs.policy_compiler(spec)
    yield from policy_specs.check_policy_spec(spec, path, compiler, check_mutating_operations)
    optional_variables = OptionalVariables(params=spec.get("paramKind") is not None, patches=True)
    mutations = spec.get("mutations") or ()
    if not mutations:
        yield errors.required(path.child("mutations"), "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _check_mutation(
            mutation, path.child("mutations").index(index), compiler, optional_variables
        )
    yield from require("reinvocationPolicy", one_of("IfNeeded", "Never"))(spec, path)


_CREATE: Final = from_root(field("spec", _check_spec, absent={}))

KIND: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="mutatingadmissionpolicies",
        kind="MutatingAdmissionPolicy",
        namespaced=False,
        categories=("api-extensions",),
    ),
    strategy=COUNTED_CONDITIONAL,
    defaults=defaults_table(
        "io.k8s.api.admissionregistration.v1", {"MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"}}
    ),
    validation=policy_specs.policy_validation(_CREATE),
    warnings=NAME_WARNINGS,
    printer=Printer(
        columns=(NAME, Column(name="Mutations", type="integer"), Column(name="ParamKind"), AGE_COLUMN),
        cells=partial(policy_specs.policy_cells, "mutations"),
    ),
)

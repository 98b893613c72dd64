"""MutatingAdmissionPolicy. Its expressions are not compiled."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.admissionregistration.matching import NAME_WARNINGS, expression
from mockube.apiserver.kinds.admissionregistration.policy_specs import (
    NO_EXPRESSION,
    check_policy_spec,
    policy_cells,
    policy_validation,
)
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.checks import Check, each, field, one_of, required
from mockube.apiserver.kinds.common.defaults import of
from mockube.apiserver.kinds.common.objects import created
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED_CONDITIONAL
from mockube.apiserver.wire.table import AGE, NAME, Column, Printer


def _patch(name: str) -> Check:
    def check(mutation: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        patch = mutation.get(name)
        if patch is None:
            return (errors.required(path.child(name)),)
        return expression(NO_EXPRESSION)(patch, path.child(name))

    return check


_PATCHES: Final[Mapping[str, Check]] = {
    "ApplyConfiguration": _patch("applyConfiguration"),
    "JSONPatch": _patch("jsonPatch"),
}


def _check_mutation(mutation: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    kind = mutation.get("patchType", "")
    if kind in _PATCHES:
        return _PATCHES[kind](mutation, path)
    return required("patchType", one_of(*_PATCHES))(mutation, path)


_CREATE: Final = created(
    field(
        "spec",
        check_policy_spec,
        required("mutations", each(_check_mutation), detail="mutations must contain at least one item"),
        required("reinvocationPolicy", one_of("IfNeeded", "Never")),
        absent={},
    )
)

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
    defaults=of(
        "io.k8s.api.admissionregistration.v1", {"MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"}}
    ),
    validation=policy_validation(_CREATE),
    warnings=NAME_WARNINGS,
    printer=Printer(
        columns=(NAME, Column(name="Mutations", type="integer"), Column(name="ParamKind"), AGE),
        cells=partial(policy_cells, "mutations"),
    ),
)

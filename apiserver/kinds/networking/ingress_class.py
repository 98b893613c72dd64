"""IngressClass."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, names, wellknown
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks, validation
from mockube.apiserver.kinds.common.cells import name_with_default, part, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.validation import Update, Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .ingress import check_reference

_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _check_controller(name: str, path: Path) -> Iterator[FieldError]:
    domain, slash, controller_path = name.partition("/")
    if not slash or not domain or not controller_path:
        yield errors.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from (errors.invalid(path, domain, problem) for problem in names.check_dns1123_subdomain(domain))
    if not re.fullmatch(_HTTP_PATH, controller_path):
        problem = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        yield errors.invalid(path, controller_path, problem)


_NAMESPACE_BY_SCOPE: Final[Mapping[str, Check]] = {
    "Cluster": checks.pointer("namespace", checks.refuse_any("`parameters.scope` is set to 'Cluster'")),
    "Namespace": checks.all_of(
        lambda parameters, path: (
            ()
            if parameters.get("namespace") is not None
            else (errors.required(path.child("namespace"), "`parameters.scope` is set to 'Namespace'"),)
        ),
        checks.pointer("namespace", checks.report(names.check_dns1123_label)),
    ),
}


def _check_scope(parameters: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    scope = parameters.get("scope")
    if scope is None:
        return (errors.required(path.child("scope")),)
    if scope not in _NAMESPACE_BY_SCOPE:
        return checks.one_of(*_NAMESPACE_BY_SCOPE)(scope, path.child("scope"))
    return _NAMESPACE_BY_SCOPE[scope](parameters, path)


_CREATE: Final = validation.from_root(
    checks.field(
        "spec",
        checks.require("controller", checks.max_bytes(250), _check_controller),
        checks.pointer("parameters", check_reference, _check_scope),
        absent={},
    )
)
_UPDATE: Final[Update] = validation.in_order(
    validation.immutable_fields("spec", "controller", absent=""),
    validation.as_created(_CREATE, SUBDOMAIN, namespaced=False),
)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        name_with_default(tree, wellknown.ANNOTATION_DEFAULT_INGRESS_CLASS),
        text(tree, "spec", "controller"),
        _parameters(part(tree, "spec", "parameters")),
        ages.age(tree, now),
    ]


def _parameters(reference: Any) -> str:
    if reference is None:
        return "<none>"
    kind, group = text(reference, "kind"), part(reference, "apiGroup")
    return f"{kind if group is None else f'{kind}.{group}'}/{text(reference, 'name')}"


KIND: Final = Kind(
    resource=Resource(
        group="networking.k8s.io",
        version="v1",
        name="ingressclasses",
        kind="IngressClass",
        namespaced=False,
    ),
    strategy=COUNTED,
    validation=Validation(
        create=_CREATE,
        update=_UPDATE,
        declared=DeclaredRules(required("spec.parameters.kind"), required("spec.parameters.name")),
    ),
    printer=Printer(
        columns=(NAME, Column(name="Controller"), Column(name="Parameters"), AGE_COLUMN), cells=_cells
    ),
    defaults=defaults_table(
        "io.k8s.api.networking.v1", {"IngressClassParametersReference": {"scope": "Cluster"}}
    ),
)

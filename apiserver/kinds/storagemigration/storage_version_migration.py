"""StorageVersionMigration: a resource whose objects a controller writes again, in the version in which they are stored."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import IMMUTABLE, is_same
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.validation import CREATE_AND_CHANGE, Validation, get_struct
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import Column, Printer

_RESOURCE: Final = ROOT.child("spec", "resource")
_CONDITIONS, _VERSION = ROOT.child("status", "conditions"), ROOT.child("status", "resourceVersion")
_SUCCEEDED, _FAILED = "Succeeded", "Failed"
_STATES: Final = ("Running", _SUCCEEDED, _FAILED)
_IS_RESOURCE_VERSION: Final = re.compile(r"[1-9][0-9]*", re.ASCII).fullmatch


def _create(migration: ReadOnlyTree) -> Iterator[FieldError]:
    resource = get_struct(migration, "spec", "resource")
    name, group = resource.get("resource") or "", resource.get("group") or ""
    if not name:
        yield errors.required(_RESOURCE.child("resource"), "resource is required to be set")
    elif problems := names.check_dns1035_label(name):
        yield errors.invalid(_RESOURCE.child("resource"), name, ",".join(problems))
    if group and (problems := names.check_dns1123_subdomain(group)):
        yield errors.invalid(_RESOURCE.child("group"), group, ",".join(problems))


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec = get_struct(new, "spec")
    if not is_same(spec, get_struct(old, "spec")):
        resource = spec.get("resource") or {}
        value = {"Resource": {"group": resource.get("group", ""), "resource": resource.get("resource", "")}}
        yield errors.invalid(ROOT.child("spec"), value, IMMUTABLE)


def _update_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    status, before = get_struct(new, "status"), get_struct(old, "status")
    version, old_version = (tree.get("resourceVersion") or "" for tree in (status, before))
    if version and not _IS_RESOURCE_VERSION(version):
        yield errors.invalid(_VERSION, version, f"resource version is not well formed: {version}")
    yield from check_conditions(status.get("conditions"), _CONDITIONS)
    if old_version and version != old_version:
        yield errors.invalid(_VERSION, version, IMMUTABLE)
    yield from _result_errors(status.get("conditions") or [], new, old)


def _result_errors(
    new_conditions: list[ReadOnlyTree], new: ReadOnlyTree, old: ReadOnlyTree
) -> Iterable[FieldError]:
    """Check that there is one result, which stays."""
    problems = []
    if _is_true(new, _SUCCEEDED) and _is_true(new, _FAILED):
        problems.append("Both success and failed conditions cannot be true at the same time")
    for kind, name in ((_SUCCEEDED, "Success"), (_FAILED, "Failed")):
        if _is_true(old, kind) and not _is_true(new, kind):
            problems.append(f"{name} condition cannot be set to false once it is true")
    return [errors.invalid(_CONDITIONS, new_conditions, problem) for problem in problems]


def _is_true(migration: ReadOnlyTree, kind: str) -> bool:
    return (conditions.get(migration, kind) or {}).get("status") == "True"


def _cells(migration: Tree, _now: datetime) -> list[Any]:
    name, group = (text(migration, "spec", "resource", field) for field in ("resource", "group"))
    states = [
        text(condition, "type")
        for condition in conditions.of(migration)
        if condition.get("status") == "True" and condition.get("type") in _STATES
    ]
    resource = f"{name}.{group}" if group else name
    return [meta.name(migration), resource, states[-1] if states else "Unknown"]


KIND: Final = Kind(
    resource=Resource(
        group="storagemigration.k8s.io",
        version="v1",
        name="storageversionmigrations",
        kind="StorageVersionMigration",
        namespaced=False,
        hashed_version="v1beta1",
        subresources=(STATUS,),
    ),
    strategy=Strategy(resets=STATUS_ALONE, unconditional_update=False),
    validation=Validation(
        repeated_checks=CREATE_AND_CHANGE,
        create=_create,
        update=_update,
        subresources={"status": _update_status},
    ),
    printer=Printer(
        columns=(Column(name="Name"), Column(name="Resource"), Column(name="Status")), cells=_cells
    ),
)

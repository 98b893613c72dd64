"""ControllerRevision: a controller's template at one revision, which is immutable."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import number, text
from mockube.apiserver.kinds.common.checks import field, non_negative
from mockube.apiserver.kinds.common.validation import Validation, as_created, from_root
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_REVISION: Final = from_root(field("revision", non_negative))


def _check_data(revision: ReadOnlyTree) -> Iterator[FieldError]:
    data, path = revision.get("data"), ROOT.child("data")
    if data is None:
        yield errors.required(path, "data is mandatory")
    elif not isinstance(data, dict):
        yield errors.required(path, "data must be a valid JSON object")


def _create(revision: ReadOnlyTree) -> Iterator[FieldError]:
    yield from _REVISION(revision)
    yield from _check_data(revision)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), _controller(tree), number(tree, "revision"), ages.age(tree, now)]


def _controller(tree: Tree) -> str:
    owner = meta.controller_of(tree)
    if owner is None:
        return "<none>"
    group, slash, _ = meta.api_version(owner).partition("/")
    kind = GroupKind(group if slash else "", meta.kind(owner))
    return f"{str(kind).lower()}/{text(owner, 'name')}"


KIND: Final = Kind(
    resource=Resource(group="apps", version="v1", name="controllerrevisions", kind="ControllerRevision"),
    strategy=Strategy(raw=("data",)),
    validation=Validation(create=_create, update=as_created(_REVISION)),
    printer=Printer(
        columns=(NAME, Column(name="Controller"), Column(name="Revision"), AGE_COLUMN), cells=_cells
    ),
)

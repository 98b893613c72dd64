"""ControllerRevisions: what a controller's template was, which never changes."""

from collections.abc import Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.kind import Validation
from apiserver.validation.objects import as_created, created, together, unchanged
from apiserver.validation.rules import Tree, field, non_negative

_REVISION: Final = created(field("revision", non_negative))


def _check_data(revision: Tree) -> Iterator[FieldError]:
    data, path = revision.get("data"), ROOT.child("data")
    if data is None:
        yield errors.required(path, "data is mandatory")
    elif not isinstance(data, dict):
        yield errors.required(path, "data must be a valid JSON object")


def _create(revision: Tree) -> Iterator[FieldError]:
    yield from _REVISION(revision)
    yield from _check_data(revision)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "ControllerRevision"): Validation(
        create=_create, update=together(as_created(_REVISION), unchanged("data"))
    ),
}

"""ControllerRevisions: what a controller's template was, which never changes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.kind import Validation
from apiserver.validation.objects import as_created, created, together
from apiserver.validation.rules import IMMUTABLE, Tree, field, non_negative

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


def _check_same_data(new: Tree, old: Tree) -> Iterable[FieldError]:
    """No data is other data than none."""
    if new.get("data") == old.get("data"):
        return ()
    return (errors.invalid(ROOT.child("data"), new.get("data"), IMMUTABLE),)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "ControllerRevision"): Validation(
        create=_create, update=together(as_created(_REVISION), _check_same_data)
    ),
}

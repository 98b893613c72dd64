"""Namespaces, and the accounts of those that run in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, meta, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import LABEL
from apiserver.validation.objects import created, part, unchecked, within
from apiserver.validation.rules import Check, Tree, each, field, valid

_FINALIZER: Final[Check] = valid(names.check_kube_finalizer_name)


def _check_finalizers(finalizers: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    """Those of a new namespace: which of them is meant is not said."""
    for finalizer in finalizers or ():
        yield from _FINALIZER(finalizer, path)


def _update_status(new: Tree, _old: Tree) -> Iterable[FieldError]:
    """A namespace terminates if and only if it is being deleted. Upstream spells the field as Go does."""
    phase = within(new, "status").get("phase", "")
    deleting = meta.is_deleting(new)
    if phase == ("Terminating" if deleting else "Active"):
        return ()
    path = ROOT.child("status", "Phase")
    if deleting:
        return (errors.invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"),)
    return (errors.invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty"),)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Namespace"): Validation(
        name=LABEL,
        create=created(field("spec", field("finalizers", _check_finalizers), absent={})),
        subresources={
            "status": _update_status,
            "finalize": part(field("finalizers", each(_FINALIZER)), "spec"),
        },
    ),
    GroupKind("", "ServiceAccount"): unchecked(),
}

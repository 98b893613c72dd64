"""PersistentVolumeClaims: what may become of them once they are there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, meta, quantity
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apimachinery.quantity import Quantity
from apiserver.validation import objectmeta
from apiserver.validation.differences import difference
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.objects import created, part, within
from apiserver.validation.resource_names import STORAGE
from apiserver.validation.rules import IMMUTABLE, Tree, as_before, each_value, field, immutable
from apiserver.validation.volumes.claims import check_changed_claim_spec, check_claim_spec
from apiserver.validation.volumes.persistent import check_basic_amount

_SPEC: Final = ROOT.child("spec")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_ATTRIBUTES_CLASS: Final = "volumeAttributesClassName"


def _requested(claim: Tree) -> Quantity:
    return quantity.parse(within(claim, "spec", "resources", "requests").get(STORAGE, "0"))


# --- storage classes


def _class_of(claim: Tree) -> str | None:
    name: str | None = within(claim, "spec").get("storageClassName")
    return name


def _moves_class_to_spec(new: Tree, old: Tree) -> bool:
    """The annotation of old gives way to the field, with the same class in it."""
    before, after = (meta.annotations(claim).get(_CLASS_ANNOTATION) for claim in (old, new))
    return before is not None and after is None and _class_of(old) is None and _class_of(new) == before


def _gets_class(new: Tree, old: Tree) -> bool:
    """A claim of no class gets one, as happens when there is a default again."""
    unset = _CLASS_ANNOTATION not in meta.annotations(old) and _class_of(old) is None
    return unset and _class_of(new) is not None


def _check_same_class_annotation(new: Tree, old: Tree) -> Iterable[FieldError]:
    now, before = (meta.annotations(claim).get(_CLASS_ANNOTATION, "") for claim in (new, old))
    if now == before or _moves_class_to_spec(new, old):
        return ()
    path = ROOT.child("metadata", "annotations", _CLASS_ANNOTATION)
    return (errors.invalid(path, now, IMMUTABLE),)


# --- all the rest


def _with_storage_as(spec: Tree, before: Tree) -> Tree:
    """The spec with the storage that was asked for before."""
    resources, storage = within(spec, "resources"), within(before, "resources", "requests").get(STORAGE)
    if resources.get("requests") is None:
        return spec
    requests = {**resources["requests"], STORAGE: storage}
    return {**spec, "resources": {**resources, "requests": requests}}


def _check_same_spec(new: Tree, old: Tree) -> Iterable[FieldError]:
    now, before = within(new, "spec"), within(old, "spec")
    free = [_ATTRIBUTES_CLASS]
    if not before.get("volumeName"):
        free.append("volumeName")
    if _moves_class_to_spec(new, old) or _gets_class(new, old):
        free.append("storageClassName")
    now = as_before(now, before, *free)
    if within(new, "status").get("phase") == "Bound":
        now = _with_storage_as(now, before)
    if now == before:
        return ()
    allowed = "resources.requests and volumeAttributesClassName for bound claims"
    changed = difference("core.PersistentVolumeClaimSpec", before, now)
    return (errors.forbidden(_SPEC, f"spec is immutable after creation except {allowed}\n{changed}"),)


def _check_not_smaller(new: Tree, old: Tree) -> Iterable[FieldError]:
    """Only what was asked for and not yet given can be taken back."""
    given = quantity.parse(within(old, "status", "capacity").get(STORAGE, "0"))
    if not _requested(new) < _requested(old) or _requested(new) > given:
        return ()
    path = _SPEC.child("resources", "requests", STORAGE)
    return (errors.forbidden(path, "field can not be less than status.capacity"),)


def _check_attributes_class(new: Tree, old: Tree) -> Iterable[FieldError]:
    now, before = within(new, "spec").get(_ATTRIBUTES_CLASS), within(old, "spec").get(_ATTRIBUTES_CLASS)
    if now or not before or not within(old, "status").get("currentVolumeAttributesClassName"):
        return ()
    became = "nil" if now is None else "an empty string"
    detail = f"update from non-nil value to {became} is forbidden"
    return (errors.forbidden(_SPEC.child(_ATTRIBUTES_CLASS), detail),)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    now, before = within(new, "spec"), within(old, "spec")
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    yield from check_changed_claim_spec(now, before, _SPEC)
    yield from _check_same_class_annotation(new, old)
    yield from _check_same_spec(new, old)
    yield from _check_not_smaller(new, old)
    yield from immutable(now.get("volumeMode"), before.get("volumeMode"), ROOT.child("volumeMode"))
    yield from _check_attributes_class(new, old)


_STATUS: Final = part(field("capacity", each_value(check_basic_amount)), "status")

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "PersistentVolumeClaim"): Validation(
        create=created(field("spec", check_claim_spec, absent={})),
        update=_update,
        subresources={"status": _STATUS},
    ),
}

"""PersistentVolumeClaim."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.resource_names import is_native
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_BETA_STORAGE_CLASS
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, objectmeta
from mockube.apiserver.kinds.common.cells import amount, items, text
from mockube.apiserver.kinds.common.checks import (
    IMMUTABLE,
    all_of,
    each_value,
    field,
    immutable,
    optional,
    with_old_values,
)
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import difference
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.resource_names import STORAGE
from mockube.apiserver.kinds.common.validation import Validation, from_root, get_struct, part
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, DisabledFields, Gate, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import claim_spec
from .persistent_volume import check_basic_amount
from .warnings import claim_warnings

_SPEC: Final = ROOT.child("spec")
_ATTRIBUTES_CLASS: Final = "volumeAttributesClassName"


def _requested_storage(claim: ReadOnlyTree) -> Quantity:
    return quantity.parse(get_struct(claim, "spec", "resources", "requests").get(STORAGE, "0"))


# --- storage classes


def _class_of(claim: ReadOnlyTree) -> str | None:
    name: str | None = get_struct(claim, "spec").get("storageClassName")
    return name


def _moves_class_to_spec(new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    """Return whether the update replaces the old annotation by the field, with the same class."""
    old_class, new_class = (
        meta.annotations(claim).get(ANNOTATION_BETA_STORAGE_CLASS) for claim in (old, new)
    )
    return (
        old_class is not None and new_class is None and _class_of(old) is None and _class_of(new) == old_class
    )


def _gets_class(new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    """Return whether the update sets the class of a claim without one, as it happens after a default class is added."""
    unset = ANNOTATION_BETA_STORAGE_CLASS not in meta.annotations(old) and _class_of(old) is None
    return unset and _class_of(new) is not None


def _check_same_class_annotation(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    new_class, old_class = (
        meta.annotations(claim).get(ANNOTATION_BETA_STORAGE_CLASS, "") for claim in (new, old)
    )
    if new_class == old_class or _moves_class_to_spec(new, old):
        return ()
    path = ROOT.child("metadata", "annotations", ANNOTATION_BETA_STORAGE_CLASS)
    return (errors.invalid(path, new_class, IMMUTABLE),)


# --- other fields of the spec


def _with_old_storage(spec: ReadOnlyTree, old_spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the spec with the storage request of the old spec."""
    resources, storage = (
        get_struct(spec, "resources"),
        get_struct(old_spec, "resources", "requests").get(STORAGE),
    )
    if resources.get("requests") is None:
        return spec
    requests = {**resources["requests"], STORAGE: storage}
    return {**spec, "resources": {**resources, "requests": requests}}


def _with_amounts(spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the spec with parsed quantities: 2Gi equals 2147483648."""
    resources = get_struct(spec, "resources")
    amounts = {
        name: {key: quantity.parse(text) for key, text in resources[name].items()}
        for name in ("limits", "requests")
        if resources.get(name)
    }
    return {**spec, "resources": {**resources, **amounts}}


def _check_same_spec(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    spec, old_spec = get_struct(new, "spec"), get_struct(old, "spec")
    changeable = []
    if not old_spec.get("volumeName"):
        old_spec = with_old_values(old_spec, spec, "volumeName")  # so that the diff does not contain it
    if _moves_class_to_spec(new, old) or _gets_class(new, old):
        changeable.append("storageClassName")
    is_bound = get_struct(new, "status").get("phase") == "Bound"
    if is_bound:
        changeable.append(_ATTRIBUTES_CLASS)
    spec = with_old_values(spec, old_spec, *changeable)
    if is_bound:
        spec = _with_old_storage(spec, old_spec)
    if spec == old_spec or _with_amounts(spec) == _with_amounts(old_spec):
        return ()
    allowed = "resources.requests and volumeAttributesClassName for bound claims"
    changed = difference("core.PersistentVolumeClaimSpec", old_spec, spec)
    return (errors.forbidden(_SPEC, f"spec is immutable after creation except {allowed}\n{changed}"),)


def _check_not_smaller(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that a decreased storage request is above the capacity of the claim."""
    capacity = quantity.parse(get_struct(old, "status", "capacity").get(STORAGE, "0"))
    if not _requested_storage(new) < _requested_storage(old) or _requested_storage(new) > capacity:
        return ()
    path = _SPEC.child("resources", "requests", STORAGE)
    return (errors.forbidden(path, "field can not be less than status.capacity"),)


def _check_attributes_class(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    new_class, old_class = (
        get_struct(new, "spec").get(_ATTRIBUTES_CLASS),
        get_struct(old, "spec").get(_ATTRIBUTES_CLASS),
    )
    if new_class or not old_class or not get_struct(old, "status").get("currentVolumeAttributesClassName"):
        return ()
    new_value = "nil" if new_class is None else "an empty string"
    detail = f"update from non-nil value to {new_value} is forbidden"
    return (errors.forbidden(_SPEC.child(_ATTRIBUTES_CLASS), detail),)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec, old_spec = get_struct(new, "spec"), get_struct(old, "spec")
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    yield from claim_spec.check_changed_claim_spec(spec, old_spec, _SPEC)
    yield from _check_same_class_annotation(new, old)
    yield from _check_same_spec(new, old)
    yield from _check_not_smaller(new, old)
    yield from immutable(spec.get("volumeMode"), old_spec.get("volumeMode"), ROOT.child("volumeMode"))
    yield from _check_attributes_class(new, old)


_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def _check_resource(name: str, path: Path) -> list[FieldError]:
    """Check the name of a resource in the status: storage is the only native one."""
    invalid = [errors.invalid(path, name, problem) for problem in names.check_label_key(name)]
    if invalid or name == STORAGE or not is_native(name):
        return invalid
    return [errors.not_supported(path, name, [STORAGE])]


def _check_resize_statuses(statuses: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for name, status in sorted(statuses.items()):
        yield from _check_resource(name, path)
        if status not in _RESIZE_STATUSES:
            yield errors.not_supported(path, name, _RESIZE_STATUSES)


def _check_allocated(amounts: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for name, amount_text in sorted(amounts.items()):
        yield from _check_resource(name, path) or check_basic_amount(amount_text, path.key(name))


_STATUS: Final = part(
    all_of(
        field("capacity", each_value(check_basic_amount)),
        optional("allocatedResourceStatuses", _check_resize_statuses),
        optional("allocatedResources", _check_allocated),
    ),
    "status",
)


# --- strategy

_DATA_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})
"""The groups and kinds that `dataSource` can have; `dataSourceRef` can have any."""


def _prepare_create(claim: Tree, _request: StrategyContext) -> None:
    claim["status"] = {"phase": "Pending"}
    spec = _without_other_namespace(claim["spec"])
    claim["spec"] = _with_both_sources(_without_unknown_source(spec))


def _prepare_update(new: Tree, old: Tree, _request: StrategyContext) -> None:
    spec, old_spec = new["spec"], old["spec"]
    if "dataSourceRef" not in old_spec:
        spec = _without_other_namespace(spec)
    if "dataSource" not in old_spec and "dataSourceRef" not in old_spec:
        spec = _without_unknown_source(spec)
    new["spec"] = _with_both_sources(spec)


def _without_unknown_source(spec: Tree) -> Tree:
    """Remove a `dataSource` of another kind, unless `dataSourceRef` is set."""
    source = None if spec.get("dataSourceRef") else spec.get("dataSource")
    if not source or (source.get("apiGroup") or "", source.get("kind", "")) in _DATA_SOURCES:
        return spec
    return {field: value for field, value in spec.items() if field != "dataSource"}


def _without_other_namespace(spec: Tree) -> Tree:
    """Remove a `dataSourceRef` with a namespace: the feature gate for such sources is off."""
    if not (spec.get("dataSourceRef") or {}).get("namespace"):
        return spec
    return {field: value for field, value in spec.items() if field != "dataSourceRef"}


def _with_both_sources(spec: Tree) -> Tree:
    """Copy the source of one of the two fields to the other, if that is not set and can have it."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        return spec | {"dataSourceRef": dict(source)}
    if reference and not source and not reference.get("namespace"):
        source = {field: value for field, value in reference.items() if field != "namespace"}
        return spec | {"dataSource": source}
    return spec


# --- warnings and columns


_NO_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'


def _warn(claim: ReadOnlyTree) -> Iterator[str]:
    if ANNOTATION_BETA_STORAGE_CLASS in meta.annotations(claim):
        yield f"metadata.annotations[{ANNOTATION_BETA_STORAGE_CLASS}]: {_NO_CLASS}"
    yield from claim_warnings(claim.get("spec"), _SPEC)


def _cells(claim: Tree, now: datetime) -> list[Any]:
    volume = text(claim, "spec", "volumeName")
    return [
        meta.name(claim),
        claim_spec.phase_text(claim),
        volume,
        amount(claim, "status", "capacity", "storage") if volume else "",
        claim_spec.access_modes_text(items(claim, "status", "accessModes")) if volume else "",
        claim_spec.storage_class_text(claim),
        text(claim, "spec", "volumeAttributesClassName", default="<unset>"),
        ages.age(claim, now),
        text(claim, "spec", "volumeMode", default="<unset>"),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="persistentvolumeclaims",
        kind="PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=(STATUS,),
    ),
    strategy=Strategy(
        disabled=DisabledFields((Gate(("status.healthStatus",)),)),
        prepare_create=_prepare_create,
        prepare_update={MAIN: _prepare_update},
        returns_deleted=True,
    ),
    validation=Validation(
        create=from_root(field("spec", claim_spec.check_claim_spec, absent={})),
        update=_update,
        subresources={"status": _STATUS},
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Volume"),
            Column(name="Capacity"),
            Column(name="Access Modes"),
            Column(name="StorageClass"),
            Column(name="VolumeAttributesClass"),
            AGE_COLUMN,
            Column(name="VolumeMode", priority=1),
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.core.v1",
        {
            "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
            "PersistentVolumeClaimStatus": {"phase": "Pending"},
        },
    ),
)

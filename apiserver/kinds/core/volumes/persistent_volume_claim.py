"""PersistentVolumeClaim."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, objectmeta
from mockube.apiserver.kinds.common.cells import amount, items, text
from mockube.apiserver.kinds.common.checks import (
    IMMUTABLE,
    all_of,
    as_before,
    each_value,
    field,
    immutable,
    optional,
)
from mockube.apiserver.kinds.common.defaults import of
from mockube.apiserver.kinds.common.internal import difference
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.objects import from_root, get_struct, part
from mockube.apiserver.kinds.common.resource_names import STORAGE, is_native
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import on_every_write
from mockube.apiserver.kinds.core.volumes.claim_spec import (
    access_modes_text,
    check_changed_claim_spec,
    check_claim_spec,
    phase_text,
    storage_class_text,
)
from mockube.apiserver.kinds.core.volumes.persistent_volume import check_basic_amount
from mockube.apiserver.kinds.core.volumes.warnings import claim_warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, Request, Strategy
from mockube.apiserver.wire.table import AGE, NAME, Column, Printer

_SPEC: Final = ROOT.child("spec")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_ATTRIBUTES_CLASS: Final = "volumeAttributesClassName"


def _requested_storage(claim: ReadOnlyTree) -> Quantity:
    return quantity.parse(get_struct(claim, "spec", "resources", "requests").get(STORAGE, "0"))


# --- storage classes


def _class_of(claim: ReadOnlyTree) -> str | None:
    name: str | None = get_struct(claim, "spec").get("storageClassName")
    return name


def _moves_class_to_spec(new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    """The annotation of old gives way to the field, with the same class in it."""
    before, after = (meta.annotations(claim).get(_CLASS_ANNOTATION) for claim in (old, new))
    return before is not None and after is None and _class_of(old) is None and _class_of(new) == before


def _gets_class(new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    """A claim of no class gets one, as happens when there is a default again."""
    unset = _CLASS_ANNOTATION not in meta.annotations(old) and _class_of(old) is None
    return unset and _class_of(new) is not None


def _check_same_class_annotation(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    now, before = (meta.annotations(claim).get(_CLASS_ANNOTATION, "") for claim in (new, old))
    if now == before or _moves_class_to_spec(new, old):
        return ()
    path = ROOT.child("metadata", "annotations", _CLASS_ANNOTATION)
    return (errors.invalid(path, now, IMMUTABLE),)


# --- all the rest


def _with_storage_as(spec: ReadOnlyTree, before: ReadOnlyTree) -> ReadOnlyTree:
    """The spec with the storage that was requested before."""
    resources, storage = (
        get_struct(spec, "resources"),
        get_struct(before, "resources", "requests").get(STORAGE),
    )
    if resources.get("requests") is None:
        return spec
    requests = {**resources["requests"], STORAGE: storage}
    return {**spec, "resources": {**resources, "requests": requests}}


def _with_amounts(spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the spec with quantities in place of their texts: 2Gi is 2147483648."""
    resources = get_struct(spec, "resources")
    amounts = {
        name: {key: quantity.parse(text) for key, text in resources[name].items()}
        for name in ("limits", "requests")
        if resources.get(name)
    }
    return {**spec, "resources": {**resources, **amounts}}


def _check_same_spec(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    now, before = get_struct(new, "spec"), get_struct(old, "spec")
    free = []
    if not before.get("volumeName"):
        before = as_before(before, now, "volumeName")  # and so both have it where they are shown
    if _moves_class_to_spec(new, old) or _gets_class(new, old):
        free.append("storageClassName")
    is_bound = get_struct(new, "status").get("phase") == "Bound"
    if is_bound:
        free.append(_ATTRIBUTES_CLASS)
    now = as_before(now, before, *free)
    if is_bound:
        now = _with_storage_as(now, before)
    if now == before or _with_amounts(now) == _with_amounts(before):
        return ()
    allowed = "resources.requests and volumeAttributesClassName for bound claims"
    changed = difference("core.PersistentVolumeClaimSpec", before, now)
    return (errors.forbidden(_SPEC, f"spec is immutable after creation except {allowed}\n{changed}"),)


def _check_not_smaller(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that the storage request does not shrink below the present capacity."""
    capacity = quantity.parse(get_struct(old, "status", "capacity").get(STORAGE, "0"))
    if not _requested_storage(new) < _requested_storage(old) or _requested_storage(new) > capacity:
        return ()
    path = _SPEC.child("resources", "requests", STORAGE)
    return (errors.forbidden(path, "field can not be less than status.capacity"),)


def _check_attributes_class(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    now, before = (
        get_struct(new, "spec").get(_ATTRIBUTES_CLASS),
        get_struct(old, "spec").get(_ATTRIBUTES_CLASS),
    )
    if now or not before or not get_struct(old, "status").get("currentVolumeAttributesClassName"):
        return ()
    became = "nil" if now is None else "an empty string"
    detail = f"update from non-nil value to {became} is forbidden"
    return (errors.forbidden(_SPEC.child(_ATTRIBUTES_CLASS), detail),)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    now, before = get_struct(new, "spec"), get_struct(old, "spec")
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    yield from check_changed_claim_spec(now, before, _SPEC)
    yield from _check_same_class_annotation(new, old)
    yield from _check_same_spec(new, old)
    yield from _check_not_smaller(new, old)
    yield from immutable(now.get("volumeMode"), before.get("volumeMode"), ROOT.child("volumeMode"))
    yield from _check_attributes_class(new, old)


_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def _check_resource(name: str, path: Path) -> list[FieldError]:
    """Check the name of a resource of a claim: of those without a domain, there is storage only."""
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

_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})
"""What `dataSource` may name; `dataSourceRef` may name anything."""


def _begin_claim(claim: Tree, _request: Request) -> None:
    claim["status"] = {"phase": "Pending"}
    spec = _without_other_namespace(claim["spec"])
    claim["spec"] = _with_both_sources(_without_unknown_source(spec))


def _prepare_claim(new: Tree, old: Tree, _request: Request) -> None:
    spec, old_spec = new["spec"], old["spec"]
    if "dataSourceRef" not in old_spec:
        spec = _without_other_namespace(spec)
    if "dataSource" not in old_spec and "dataSourceRef" not in old_spec:
        spec = _without_unknown_source(spec)
    new["spec"] = _with_both_sources(spec)


def _without_unknown_source(spec: Tree) -> Tree:
    """Drop a `dataSource` that names anything else, as long as the reference that may do so is not set."""
    source = None if spec.get("dataSourceRef") else spec.get("dataSource")
    if not source or (source.get("apiGroup") or "", source.get("kind", "")) in _SOURCES:
        return spec
    return {field: value for field, value in spec.items() if field != "dataSource"}


def _without_other_namespace(spec: Tree) -> Tree:
    """The gate for sources of other namespaces is off: a reference that names one is dropped."""
    if not (spec.get("dataSourceRef") or {}).get("namespace"):
        return spec
    return {field: value for field, value in spec.items() if field != "dataSourceRef"}


def _with_both_sources(spec: Tree) -> Tree:
    """A source that one of the two fields names is named by the other too, as far as it can be."""
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
    if _CLASS_ANNOTATION in meta.annotations(claim):
        yield f"metadata.annotations[{_CLASS_ANNOTATION}]: {_NO_CLASS}"
    yield from claim_warnings(claim.get("spec"), _SPEC)


def _cells(claim: Tree, now: datetime) -> list[Any]:
    volume = text(claim, "spec", "volumeName")
    return [
        meta.name(claim),
        phase_text(claim),
        volume,
        amount(claim, "status", "capacity", "storage") if volume else "",
        access_modes_text(items(claim, "status", "accessModes")) if volume else "",
        storage_class_text(claim),
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
        prepare_create=_begin_claim, prepare_update={MAIN: _prepare_claim}, returns_deleted=True
    ),
    validation=Validation(
        create=from_root(field("spec", check_claim_spec, absent={})),
        update=_update,
        subresources={"status": _STATUS},
    ),
    warnings=on_every_write(_warn),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Volume"),
            Column(name="Capacity"),
            Column(name="Access Modes"),
            Column(name="StorageClass"),
            Column(name="VolumeAttributesClass"),
            AGE,
            Column(name="VolumeMode", priority=1),
        ),
        cells=_cells,
    ),
    defaults=of(
        "io.k8s.api.core.v1",
        {
            "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
            "PersistentVolumeClaimStatus": {"phase": "Pending"},
        },
    ),
)

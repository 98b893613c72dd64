"""PersistentVolume, and the check of a spec within a VolumeAttachment."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_BETA_STORAGE_CLASS
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, checks, validation
from mockube.apiserver.kinds.common import node_labels as labels
from mockube.apiserver.kinds.common.cells import amount, items, part, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, defaults_table
from mockube.apiserver.kinds.common.internal import difference, internal
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.resource_names import STORAGE, check_positive
from mockube.apiserver.kinds.common.selectors import (
    check_node_selector,
    check_node_selector_leniently,
    has_wrong_node_values,
)
from mockube.apiserver.kinds.common.validation import Create, Validation
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import claim_spec
from .legacy import persistent_iscsi
from .sources import PERSISTENT_SOURCES, check_source
from .warnings import volume_source_warnings

_CLASS_NAME: Final = checks.report(names.check_dns1123_subdomain)
_RECYCLE: Final = "Recycle"


def _check_sources(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    return check_source(spec, path, PERSISTENT_SOURCES, unlimited="flexVolume")


_MODES: Final = checks.all_of(
    checks.require("accessModes"), checks.field("accessModes", claim_spec.check_access_modes)
)


# --- specs


def check_basic_amount(amount: str, path: Path) -> Iterable[FieldError]:
    value = quantity.int64_value(amount, 0)
    return (errors.invalid(path, value, "must be a valid resource quantity"),) if value < 0 else ()


def _check_capacity(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that storage is the only capacity."""
    capacity, path = spec.get("capacity"), path.child("capacity")
    if not capacity:
        yield errors.required(path)
    if [*(capacity or ())] != [STORAGE]:
        yield errors.not_supported(path, capacity, (STORAGE,))
    for name, storage in (capacity or {}).items():
        yield from check_basic_amount(storage, path.key(name))
        yield from check_positive(storage, path.key(name))


def _check_local(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    first = next((name for name in PERSISTENT_SOURCES if spec.get(name) is not None), "")
    if first != "local" or validation.get_struct(spec, "nodeAffinity").get("required") is not None:
        return ()
    return (errors.required(path.child("nodeAffinity"), "Local volume requires node affinity"),)


def _check_recycling(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    source = spec.get("hostPath")
    if source is None or spec.get("persistentVolumeReclaimPolicy") != _RECYCLE:
        return ()
    if posixpath.normpath(source.get("path", "")) not in ("/", "//"):
        return ()
    detail = "may not be 'recycle' for a hostPath mount of '/'"
    return (errors.forbidden(path.child("persistentVolumeReclaimPolicy"), detail),)


def _check_attributes_class(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    detail = "an empty string is disallowed"
    yield from checks.require("volumeAttributesClassName", _CLASS_NAME, detail=detail)(spec, path)
    if spec.get("csi") is None:
        yield errors.required(path.child("csi"), "has to be specified when using volumeAttributesClassName")


_AFTER_SOURCES: Final = checks.all_of(
    _check_local,
    _check_recycling,
    checks.optional("storageClassName", _CLASS_NAME),
    checks.pointer("volumeMode", checks.one_of(*claim_spec.VOLUME_MODES)),
    _check_attributes_class,
)


def _sources_of(volume: ReadOnlyTree, spec: ReadOnlyTree) -> Mapping[str, Check]:
    """Return the checks of the sources. That of iSCSI depends on the name of the volume."""
    if spec.get("iscsi") is None:
        return PERSISTENT_SOURCES
    return {**PERSISTENT_SOURCES, "iscsi": persistent_iscsi(meta.name(volume))}


def _create_with(selector: Check) -> Create:
    """Return the check of a volume, in which `selector` checks the nodes."""
    affinity = checks.require("required", selector, detail="must specify required node constraints")
    before_sources = checks.all_of(
        _MODES,
        _check_capacity,
        checks.optional("persistentVolumeReclaimPolicy", checks.one_of("Delete", _RECYCLE, "Retain")),
        checks.pointer("nodeAffinity", affinity),
    )

    def create(volume: ReadOnlyTree) -> Iterator[FieldError]:
        spec, path = validation.get_struct(volume, "spec"), ROOT.child("spec")
        yield from before_sources(spec, path)
        yield from check_source(spec, path, _sources_of(volume, spec), unlimited="flexVolume")
        yield from _AFTER_SOURCES(spec, path)

    return create


# --- specs in a VolumeAttachment

_NOT_INLINE: Final = checks.refuse_any("may not be specified in the context of inline volumes")


def _require_value(value: str, detail: str) -> Check:
    return lambda actual_value, path: () if actual_value == value else (errors.forbidden(path, detail),)


check_inline_spec: Final = checks.all_of(
    checks.pointer("claimRef", _NOT_INLINE),
    checks.optional("capacity", _NOT_INLINE),
    checks.require("csi", detail="has to be specified in the context of inline volumes"),
    _MODES,
    checks.optional(
        "persistentVolumeReclaimPolicy",
        _require_value("Retain", "may only be Retain in the context of inline volumes"),
    ),
    checks.pointer("nodeAffinity", _NOT_INLINE),
    _check_sources,
    _check_local,
    checks.optional("storageClassName", _NOT_INLINE),
    checks.pointer(
        "volumeMode",
        _require_value(
            "Filesystem", "may not specify volumeMode other than Filesystem in the context of inline volumes"
        ),
    ),
)


# --- changes


_OTHER_FIELDS: Final = frozenset(
    {
        *("Capacity", "AccessModes", "ClaimRef", "PersistentVolumeReclaimPolicy", "StorageClassName"),
        *("MountOptions", "VolumeMode", "NodeAffinity", "VolumeAttributesClassName"),
    }
)
"""The fields of upstream's internal spec that are not in the struct of its source."""


def _source(volume: ReadOnlyTree) -> dict[str, Any]:
    spec = validation.get_struct(volume, "spec")
    return {name: spec[name] for name in PERSISTENT_SOURCES if spec.get(name) is not None}


def _check_same_source(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that the source is unchanged, except that the secret for expansion may be added to a CSI source."""
    source, old_source = _source(new), _source(old)
    expansion = "controllerExpandSecretRef"
    if expansion in (source.get("csi") or ()) and "csi" in old_source and expansion not in old_source["csi"]:
        source["csi"] = {name: value for name, value in source["csi"].items() if name != expansion}
    if source == old_source:
        return ()
    name = "spec.persistentvolumesource"
    diff = difference("core.PersistentVolumeSpec", old_source, source, without=_OTHER_FIELDS)
    return (errors.forbidden(ROOT.child(name), f"{name} is immutable after creation\n{diff}"),)


def _check_same_mode_and_nodes(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec, old_spec = validation.get_struct(new, "spec"), validation.get_struct(old, "spec")
    yield from checks.immutable(spec.get("volumeMode"), old_spec.get("volumeMode"), ROOT.child("volumeMode"))
    affinity, path = spec.get("nodeAffinity"), ROOT.child("nodeAffinity")
    if old_spec.get("nodeAffinity") is not None and affinity != old_spec["nodeAffinity"]:
        value = None if affinity is None else internal("core.VolumeNodeAffinity", affinity)
        yield errors.invalid(path, value, checks.IMMUTABLE)
    attributes_class = "volumeAttributesClassName"
    if old_spec.get(attributes_class) is not None and spec.get(attributes_class) is None:
        detail = "update from non-nil value to nil is forbidden"
        yield errors.forbidden(ROOT.child("spec", attributes_class), detail)


_CREATE: Final = _create_with(check_node_selector)
_RECREATE: Final = _create_with(check_node_selector_leniently)
_STRICTLY: Final = validation.as_created(_CREATE, SUBDOMAIN, namespaced=False)
_LENIENTLY: Final = validation.as_created(_RECREATE, SUBDOMAIN, namespaced=False)


def _as_created(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Repeat the checks of a new volume. As upstream, an update reports their errors twice."""
    required = (validation.get_struct(old, "spec").get("nodeAffinity") or {}).get("required")
    check = _LENIENTLY if required and has_wrong_node_values(required) else _STRICTLY
    return check(new, old)


# --- strategy and defaults


_PHASE_TIME = "lastPhaseTransitionTime"


def _prepare_create(volume: Tree, request: StrategyContext) -> None:
    volume["status"] = {"phase": "Pending", _PHASE_TIME: format_time(request.now)}


def _prepare_status(new: Tree, old: Tree, request: StrategyContext) -> None:
    """Set the time of a change of the phase, unless the client sets it."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    transition_time = status.get(_PHASE_TIME)
    if status.get("phase") != old_status.get("phase"):
        if transition_time in (None, old_status.get(_PHASE_TIME)):
            new["status"] = status | {_PHASE_TIME: format_time(request.now)}
    elif transition_time is None and old_status.get(_PHASE_TIME) is not None:
        new["status"] = status | {_PHASE_TIME: old_status[_PHASE_TIME]}


def _default_policy_and_mode(volume: Tree) -> None:
    """Set the defaults of a PersistentVolume. They do not apply to the spec in a VolumeAttachment."""
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")


# --- warnings

_ANNOTATIONS: Final = {
    ANNOTATION_BETA_STORAGE_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}


_NO_RECYCLING: Final = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)


_DEPRECATED: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
"""The deprecated sources, in upstream's order."""


def _warn(volume: ReadOnlyTree) -> Iterator[str]:
    spec, annotations = volume.get("spec") or {}, meta.annotations(volume)
    for name, problem in _ANNOTATIONS.items():
        if name in annotations:
            yield f"metadata.annotations[{name}]: {problem}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield _NO_RECYCLING
    if required := (spec.get("nodeAffinity") or {}).get("required"):
        path = ROOT.child("spec").child("nodeAffinity", "required", "nodeSelectorTerms")
        yield from labels.term_warnings(required.get("nodeSelectorTerms"), path)
    for source in _DEPRECATED:
        if source in spec:
            yield from volume_source_warnings({source: spec[source]}, ROOT.child("spec"))


# --- columns


def _cells(volume: Tree, now: datetime) -> list[Any]:
    claim = part(volume, "spec", "claimRef")
    return [
        meta.name(volume),
        amount(volume, "spec", "capacity", "storage"),
        claim_spec.access_modes_text(items(volume, "spec", "accessModes")),
        text(volume, "spec", "persistentVolumeReclaimPolicy"),
        claim_spec.phase_text(volume),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        claim_spec.storage_class_text(volume),
        text(volume, "spec", "volumeAttributesClassName", default="<unset>"),
        text(volume, "status", "reason"),
        ages.age(volume, now),
        text(volume, "spec", "volumeMode", default="<unset>"),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="persistentvolumes",
        kind="PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources=(STATUS,),
    ),
    strategy=Strategy(
        prepare_create=_prepare_create, prepare_update={"status": _prepare_status}, returns_deleted=True
    ),
    validation=Validation(
        repeated_checks=validation.NO_CHECKS,
        create=_CREATE,
        update=validation.in_order(_as_created, _as_created, _check_same_source, _check_same_mode_and_nodes),
        subresources={"status": validation.accept_update},
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Capacity"),
            Column(name="Access Modes"),
            Column(name="Reclaim Policy"),
            Column(name="Status"),
            Column(name="Claim"),
            Column(name="StorageClass"),
            Column(name="VolumeAttributesClass"),
            Column(name="Reason"),
            AGE_COLUMN,
            Column(name="VolumeMode", priority=1),
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.core.v1",
        {
            "PersistentVolume": _default_policy_and_mode,
            "PersistentVolumeSpec": FILLED_BY_OWNER,
            "PersistentVolumeStatus": {"phase": "Pending"},
        },
    ),
)

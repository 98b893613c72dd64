"""PersistentVolumes, and specs of them that a VolumeAttachment carries."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from apimachinery import errors, names, quantity
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.node_selectors import check_node_selector, check_node_selector_leniently
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.objects import as_created, created, together, within
from apiserver.validation.resource_names import STORAGE, check_positive
from apiserver.validation.rules import (
    IMMUTABLE,
    Check,
    Tree,
    every,
    field,
    immutable,
    one_of,
    optional,
    pointer,
    refused,
    required,
    valid,
)
from apiserver.validation.volumes.claims import VOLUME_MODES, check_access_modes
from apiserver.validation.volumes.persistent_sources import PERSISTENT_SOURCES
from apiserver.validation.volumes.sources import check_source

_CLASS_NAME: Final = valid(names.check_dns1123_subdomain)
_RECYCLE: Final = "Recycle"


def _check_sources(spec: Tree, path: Path) -> Iterable[FieldError]:
    return check_source(spec, path, PERSISTENT_SOURCES)


_MODES: Final = every(required("accessModes"), field("accessModes", check_access_modes))


# --- on their own


def check_basic_amount(amount: str, path: Path) -> Iterable[FieldError]:
    of = quantity.parse(amount)
    return (
        (errors.invalid(path, of.scaled_value(), "must be a valid resource quantity"),)
        if of < quantity.ZERO
        else ()
    )


def _check_capacity(spec: Tree, path: Path) -> Iterator[FieldError]:
    """Storage, and nothing else."""
    capacity, path = spec.get("capacity"), path.child("capacity")
    if not capacity:
        yield errors.required(path)
    if [*(capacity or ())] != [STORAGE]:
        yield errors.not_supported(path, capacity, (STORAGE,))
    for name, amount in (capacity or {}).items():
        yield from check_basic_amount(amount, path.key(name))
        yield from check_positive(amount, path.key(name))


def _check_local(spec: Tree, path: Path) -> Iterable[FieldError]:
    if spec.get("local") is None or within(spec, "nodeAffinity").get("required") is not None:
        return ()
    return (errors.required(path.child("nodeAffinity"), "Local volume requires node affinity"),)


def _check_recycling(spec: Tree, path: Path) -> Iterable[FieldError]:
    source = spec.get("hostPath")
    if source is None or spec.get("persistentVolumeReclaimPolicy") != _RECYCLE:
        return ()
    if posixpath.normpath(source.get("path", "")) not in ("/", "//"):
        return ()
    detail = "may not be 'recycle' for a hostPath mount of '/'"
    return (errors.forbidden(path.child("persistentVolumeReclaimPolicy"), detail),)


def _check_attributes_class(spec: Tree, path: Path) -> Iterator[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    detail = "an empty string is disallowed"
    yield from required("volumeAttributesClassName", _CLASS_NAME, detail=detail)(spec, path)
    if spec.get("csi") is None:
        yield errors.required(path.child("csi"), "has to be specified when using volumeAttributesClassName")


def _spec(selector: Check) -> Check:
    affinity = required("required", selector, detail="must specify required node constraints")
    return every(
        _MODES,
        _check_capacity,
        optional("persistentVolumeReclaimPolicy", one_of("Delete", _RECYCLE, "Retain")),
        pointer("nodeAffinity", affinity),
        _check_sources,
        _check_local,
        _check_recycling,
        optional("storageClassName", _CLASS_NAME),
        pointer("volumeMode", one_of(*VOLUME_MODES)),
        _check_attributes_class,
    )


# --- in a VolumeAttachment

_NOT_INLINE: Final = refused("may not be specified in the context of inline volumes")


def _only(value: str, detail: str) -> Check:
    return lambda given, path: () if given == value else (errors.forbidden(path, detail),)


check_inline_spec: Final = every(
    pointer("claimRef", _NOT_INLINE),
    optional("capacity", _NOT_INLINE),
    required("csi", detail="has to be specified in the context of inline volumes"),
    _MODES,
    optional(
        "persistentVolumeReclaimPolicy",
        _only("Retain", "may only be Retain in the context of inline volumes"),
    ),
    pointer("nodeAffinity", _NOT_INLINE),
    _check_sources,
    optional("storageClassName", _NOT_INLINE),
    pointer(
        "volumeMode",
        _only(
            "Filesystem", "may not specify volumeMode other than Filesystem in the context of inline volumes"
        ),
    ),
    _check_attributes_class,
)


# --- changes


def _source(volume: Tree) -> dict[str, Any]:
    spec = within(volume, "spec")
    return {name: spec[name] for name in PERSISTENT_SOURCES if spec.get(name) is not None}


def _check_same_source(new: Tree, old: Tree) -> Iterable[FieldError]:
    """A secret for expansion may be added to a source of CSI; all else stays."""
    now, before = _source(new), _source(old)
    expansion = "controllerExpandSecretRef"
    if expansion in (now.get("csi") or ()) and "csi" in before and expansion not in before["csi"]:
        now["csi"] = {name: value for name, value in now["csi"].items() if name != expansion}
    if now == before:
        return ()
    name = "spec.persistentvolumesource"
    # Upstream goes on with the difference of the two; this is the line that clients look for.
    return (errors.forbidden(ROOT.child(name), f"{name} is immutable after creation\n"),)


def _check_same_mode_and_nodes(new: Tree, old: Tree) -> Iterator[FieldError]:
    now, before = within(new, "spec"), within(old, "spec")
    yield from immutable(now.get("volumeMode"), before.get("volumeMode"), ROOT.child("volumeMode"))
    affinity, path = now.get("nodeAffinity"), ROOT.child("nodeAffinity")
    if before.get("nodeAffinity") is not None and affinity != before["nodeAffinity"]:
        shown = None if affinity is None else internal("core.VolumeNodeAffinity", affinity)
        yield errors.invalid(path, shown, IMMUTABLE)
    attributes_class = "volumeAttributesClassName"
    if before.get(attributes_class) is not None and now.get(attributes_class) is None:
        detail = "update from non-nil value to nil is forbidden"
        yield errors.forbidden(ROOT.child("spec", attributes_class), detail)


_CREATE: Final = created(field("spec", _spec(check_node_selector), absent={}))
_RECREATE: Final = created(field("spec", _spec(check_node_selector_leniently), absent={}))

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "PersistentVolume"): Validation(
        create=_CREATE,
        update=together(
            as_created(_RECREATE, SUBDOMAIN, namespaced=False), _check_same_source, _check_same_mode_and_nodes
        ),
    ),
}

"""Kinds of storage.k8s.io: classes of volumes, their drivers, and what is attached where."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Create, Validation
from apiserver.validation.labels import check_label_name, check_selector
from apiserver.validation.objects import again, as_created, created, not_updated, together, unchanged, within
from apiserver.validation.resource_names import check_not_negative
from apiserver.validation.rules import (
    IMMUTABLE,
    Check,
    Tree,
    each,
    every,
    field,
    must,
    no_longer_than,
    non_negative,
    one_of,
    optional,
    pointer,
    required,
    unique,
    valid,
)
from apiserver.validation.volumes.persistent import check_inline_spec
from apiserver.validation.volumes.sources import check_driver_name

_MOST_PARAMETERS: Final = 512
_MOST_BYTES: Final = 256 * 1024

_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)


# --- classes


def _check_provisioner(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_label_name(name.lower(), path)


def _check_parameters(parameters: Tree | None, path: Path) -> Iterator[FieldError]:
    if len(parameters or ()) > _MOST_PARAMETERS:
        yield errors.too_long(path, _MOST_PARAMETERS)
        return
    size = 0
    for key, value in (parameters or {}).items():
        if not key:
            yield errors.invalid(path, key, "field can not be empty.")
        size += len(key.encode()) + len(value.encode())
    if size > _MOST_BYTES:
        yield errors.too_long(path, _MOST_BYTES)


_REQUIREMENT: Final = every(required("values", unique()), field("key", check_label_name, absent=""))
_TERM: Final = field("matchLabelExpressions", each(_REQUIREMENT), unique("key"))


def _wanted(term: Tree) -> dict[str, set[str]]:
    return {
        one.get("key", ""): {*(one.get("values") or ())} for one in (term.get("matchLabelExpressions") or ())
    }


def _check_topologies(terms: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen: list[Any] = []
    for index, term in enumerate(terms or ()):
        yield from _TERM(term, path.index(index))
        wanted = _wanted(term)
        if wanted in seen:
            yield errors.duplicate(path.index(index).child("matchLabelExpressions"), "")
        seen.append(wanted)


_STORAGE_CLASS: Final = created(
    required("provisioner", _check_provisioner),
    field("parameters", _check_parameters),
    optional("reclaimPolicy", one_of("Delete", "Retain")),
    field("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer"), absent=""),
    field("allowedTopologies", _check_topologies),
)

_ATTRIBUTES_CLASS: Final = created(
    required("driverName", _check_provisioner),
    required("parameters", _check_parameters, detail="must contain at least one key/value pair"),
)


# --- VolumeAttachment

_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _check_source(source: Tree, path: Path) -> Iterator[FieldError]:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        yield errors.required(path, _ONE_SOURCE)
    elif inline is not None and name is not None:
        yield errors.forbidden(path, _ONE_SOURCE)
    elif name == "":
        yield errors.required(
            path.child("persistentVolumeName"), "must specify non empty persistentVolumeName"
        )
    elif inline is not None:
        yield from check_inline_spec(inline, path.child("inlineVolumeSpec"))


def _check_metadata(metadata: Tree, path: Path) -> Iterable[FieldError]:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    return (errors.too_long(path, _MOST_BYTES),) if size > _MOST_BYTES else ()


_VOLUME_ERROR: Final = every(
    optional("message", no_longer_than(_MOST_BYTES)),
    pointer("errorCode", must(lambda code: code >= 0, "must be between 0 and 2147483647, inclusive")),
)

_ATTACHMENT_ERRORS: Final = every(
    optional("attachmentMetadata", _check_metadata),
    pointer("attachError", _VOLUME_ERROR),
    pointer("detachError", _VOLUME_ERROR),
)

_KNOWN_ATTACHMENT: Final = created(
    field(
        "spec",
        required("attacher"),
        field("source", _check_source, absent={}),
        field("nodeName", _SUBDOMAIN, absent=""),
        absent={},
    ),
    optional("status", _ATTACHMENT_ERRORS),
)


def _create_attachment(tree: Tree) -> Iterator[FieldError]:
    """Upstream has looked at the names of driver and volume only since v1, and lets old objects be."""
    yield from _KNOWN_ATTACHMENT(tree)
    spec, path = within(tree, "spec"), ROOT.child("spec")
    yield from optional("attacher", check_driver_name)(spec, path)
    yield from pointer("persistentVolumeName", _SUBDOMAIN)(within(spec, "source"), path.child("source"))


def _update_attachment(new: Tree, old: Tree) -> Iterator[FieldError]:
    yield from as_created(_KNOWN_ATTACHMENT, namespaced=False)(new, old)
    spec = within(new, "spec")
    if spec != within(old, "spec"):
        yield errors.invalid(ROOT.child("spec"), internal("storage.VolumeAttachmentSpec", spec), IMMUTABLE)


# --- CSINode

_NODE_ID: Final = must(lambda text: len(text.encode()) <= 256, "must be 256 characters or less")
_DRIVER: Final = every(
    required("name", check_driver_name),
    required("nodeID", _NODE_ID),
    pointer("allocatable", pointer("count", non_negative)),
)


def _check_topology_keys(keys: Iterable[str], path: Path) -> Iterator[FieldError]:
    seen = set()
    for key in keys:
        if not key:
            yield errors.required(path)
        if key in seen:
            yield errors.duplicate(path, key)
        seen.add(key)
        yield from check_label_name(key, path)


def _check_drivers(drivers: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, driver in enumerate(drivers or ()):
        at, name = path.index(index), driver.get("name", "")
        yield from _DRIVER(driver, at)
        if name in seen:
            yield errors.duplicate(at.child("name"), name)
        seen.add(name)
        yield from _check_topology_keys(driver.get("topologyKeys") or (), at)


_CSI_NODE: Final = created(field("spec", field("drivers", _check_drivers), absent={}))


def _update_csi_node(new: Tree, old: Tree) -> Iterator[FieldError]:
    """Of a driver that was there, what it can take may change."""
    yield from as_created(_CSI_NODE, namespaced=False)(new, old)
    drivers = {driver.get("name"): driver for driver in (within(new, "spec").get("drivers") or ())}
    for before in within(old, "spec").get("drivers") or ():
        now = drivers.get(before.get("name"))
        if now is not None and now | {"allocatable": None} != before | {"allocatable": None}:
            shown = internal("storage.CSINodeDriver", {**now, "allocatable": None})
            yield errors.invalid(ROOT.child("spec", "drivers"), shown, IMMUTABLE)


# --- CSIDriver

_LIFECYCLES: Final[Check] = one_of("Persistent", "Ephemeral")
_LONGEST_TOKEN: Final = 1 << 32


def _check_lifecycles(modes: Iterable[str] | None, path: Path) -> Iterator[FieldError]:
    """Upstream does not say which of them it means."""
    for mode in modes or ():
        yield from _LIFECYCLES(mode, path)


_EXPIRATION: Final = pointer(
    "expirationSeconds",
    must(lambda seconds: seconds >= 600, "may not specify a duration less than 10 minutes"),
    must(lambda seconds: seconds <= _LONGEST_TOKEN, "may not specify a duration larger than 2^32 seconds"),
)


def _check_token_requests(requests: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, request in enumerate(requests or ()):
        audience = request.get("audience", "")
        if audience in seen:
            yield errors.duplicate(path.index(index).child("audience"), audience)
        else:
            yield from _EXPIRATION(request, path.index(index))
        seen.add(audience)


_CSI_DRIVER: Final = created(
    field(
        "spec",
        pointer("fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
        field("tokenRequests", _check_token_requests),
        field("volumeLifecycleModes", _check_lifecycles),
        pointer(
            "nodeAllocatableUpdatePeriodSeconds",
            must(lambda seconds: seconds >= 10, "must be greater than or equal to 10 seconds"),
        ),
        absent={},
    )
)


def _check_same_attaching(new: Tree, old: Tree) -> Iterable[FieldError]:
    """Upstream spells the field in its own way."""
    now, before = (within(tree, "spec").get("attachRequired") for tree in (new, old))
    return () if now == before else (errors.invalid(ROOT.child("spec", "attachedRequired"), now, IMMUTABLE),)


# --- CSIStorageCapacity

_CAPACITY: Final = created(
    pointer("nodeTopology", check_selector),
    field("storageClassName", _SUBDOMAIN, absent=""),
    pointer("capacity", check_not_negative),
    pointer("maximumVolumeSize", check_not_negative),
)


def _with_fixed(create: Create, *names_: str) -> Validation:
    """A kind of which these fields stay."""
    return Validation(create=create, update=together(*map(unchanged, names_)))


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("storage.k8s.io", "StorageClass"): _with_fixed(
        _STORAGE_CLASS, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"
    ),
    GroupKind("storage.k8s.io", "VolumeAttributesClass"): Validation(
        create=_ATTRIBUTES_CLASS,
        update=together(
            not_updated("driverName", "updates to driverName are forbidden."),
            not_updated("parameters", "updates to parameters are forbidden."),
        ),
    ),
    GroupKind("storage.k8s.io", "VolumeAttachment"): Validation(
        create=_create_attachment, update=_update_attachment, subresources={"status": _update_attachment}
    ),
    GroupKind("storage.k8s.io", "CSINode"): Validation(create=_CSI_NODE, update=_update_csi_node),
    GroupKind("storage.k8s.io", "CSIDriver"): Validation(
        create=_CSI_DRIVER,
        update=together(again(_CSI_DRIVER), _check_same_attaching, unchanged("spec", "volumeLifecycleModes")),
    ),
    GroupKind("storage.k8s.io", "CSIStorageCapacity"): Validation(
        create=_CAPACITY,
        update=together(as_created(_CAPACITY), unchanged("nodeTopology"), unchanged("storageClassName")),
    ),
}

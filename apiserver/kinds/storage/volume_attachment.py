"""VolumeAttachment."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, checks, declared, validation
from mockube.apiserver.kinds.common.cells import flag, text
from mockube.apiserver.kinds.common.declared import DeclaredRules
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.core.volumes.persistent_volume import check_inline_spec
from mockube.apiserver.kinds.core.volumes.sources import check_driver_name
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_MAX_BYTES: Final = 256 * 1024
_MAX_MESSAGE_BYTES: Final = 1024

_SUBDOMAIN: Final = checks.report(names.check_dns1123_subdomain)


_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _check_source(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
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


def _check_metadata(metadata: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    return (errors.too_long(path, _MAX_BYTES),) if size > _MAX_BYTES else ()


_VOLUME_ERROR: Final = checks.all_of(
    checks.optional("message", checks.max_bytes(_MAX_MESSAGE_BYTES)),
    checks.pointer(
        "errorCode",
        checks.require_that(lambda code: code >= 0, "must be between 0 and 2147483647, inclusive"),
    ),
)

_ATTACHMENT_ERRORS: Final = checks.all_of(
    checks.optional("attachmentMetadata", _check_metadata),
    checks.pointer("attachError", _VOLUME_ERROR),
    checks.pointer("detachError", _VOLUME_ERROR),
)

_CREATE: Final = validation.from_root(
    checks.field(
        "spec",
        checks.require("attacher", check_driver_name),
        checks.field("source", _check_source, absent={}),
        checks.field("nodeName", _SUBDOMAIN, absent=""),
        absent={},
    ),
    checks.optional("status", _ATTACHMENT_ERRORS),
    checks.field(
        "spec",
        checks.field("source", checks.pointer("persistentVolumeName", _SUBDOMAIN), absent={}),
        absent={},
    ),
)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    yield from validation.as_created(_CREATE, namespaced=False)(new, old)
    spec = validation.get_struct(new, "spec")
    if spec != validation.get_struct(old, "spec"):
        yield errors.invalid(
            ROOT.child("spec"), internal("storage.VolumeAttachmentSpec", spec), checks.IMMUTABLE
        )


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        text(tree, "spec", "attacher"),
        text(tree, "spec", "source", "persistentVolumeName"),
        text(tree, "spec", "nodeName"),
        flag(tree, "status", "attached"),
        ages.age(tree, now),
    ]


KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io",
        version="v1",
        name="volumeattachments",
        kind="VolumeAttachment",
        namespaced=False,
        subresources=(STATUS,),
    ),
    strategy=Strategy(resets=STATUS_ALONE, returns_deleted=True, unconditional_update=False),
    validation=Validation(
        repeated_checks=validation.NO_CHECKS,
        silent=frozenset({"status"}),
        create=_CREATE,
        update=_update,
        subresources={"status": _update},
        declared=DeclaredRules(
            declared.immutable("spec"),
            declared.required("spec.attacher"),
            declared.caseless_subdomain("spec.attacher"),
            declared.short("spec.attacher"),
        ),
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Attacher", format="name"),
            Column(name="PV"),
            Column(name="Node"),
            Column(name="Attached", type="boolean"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
)

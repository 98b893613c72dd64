"""The columns of storage.k8s.io. CSIStorageCapacity has upstream's default ones."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta, wellknown
from apiserver.resources.columns import ages
from apiserver.resources.columns.defaults import name_with_default
from apiserver.resources.columns.parts import count, flag, items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree

_BETA_DEFAULT_STORAGE_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"


def _storage_class(tree: Tree, now: datetime) -> list[Any]:
    return [
        name_with_default(tree, wellknown.ANNOTATION_DEFAULT_STORAGE_CLASS, _BETA_DEFAULT_STORAGE_CLASS),
        text(tree, "provisioner"),
        text(tree, "reclaimPolicy", default="Delete"),
        text(tree, "volumeBindingMode", default="Immediate"),
        flag(tree, "allowVolumeExpansion"),
        ages.age(tree, now),
    ]


def _volume_attributes_class(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "driverName"), ages.age(tree, now)]


def _volume_attachment(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        text(tree, "spec", "attacher"),
        text(tree, "spec", "source", "persistentVolumeName"),
        text(tree, "spec", "nodeName"),
        flag(tree, "status", "attached"),
        ages.age(tree, now),
    ]


def _csi_driver(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    return [
        meta.name(tree),
        flag(spec, "attachRequired", default=True),
        flag(spec, "podInfoOnMount"),
        flag(spec, "storageCapacity"),
        _audiences(spec),
        flag(spec, "requiresRepublish"),
        ",".join(items(spec, "volumeLifecycleModes")) or "<none>",
        ages.age(tree, now),
    ]


def _audiences(spec: Any) -> str:
    requests = part(spec, "tokenRequests")
    return "<unset>" if requests is None else ",".join(text(request, "audience") for request in requests)


def _csi_node(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "spec", "drivers"), ages.age(tree, now)]


PRINTERS: Final[Mapping[str, Printer]] = {
    "StorageClass": Printer(
        columns=(
            NAME,
            Column(name="Provisioner"),
            Column(name="ReclaimPolicy"),
            Column(name="VolumeBindingMode"),
            Column(name="AllowVolumeExpansion"),
            AGE,
        ),
        cells=_storage_class,
    ),
    "VolumeAttributesClass": Printer(
        columns=(NAME, Column(name="DriverName"), AGE), cells=_volume_attributes_class
    ),
    "VolumeAttachment": Printer(
        columns=(
            NAME,
            Column(name="Attacher", format="name"),
            Column(name="PV"),
            Column(name="Node"),
            Column(name="Attached", type="boolean"),
            AGE,
        ),
        cells=_volume_attachment,
    ),
    "CSIDriver": Printer(
        columns=(
            NAME,
            Column(name="AttachRequired", type="boolean"),
            Column(name="PodInfoOnMount", type="boolean"),
            Column(name="StorageCapacity", type="boolean"),
            Column(name="TokenRequests"),
            Column(name="RequiresRepublish", type="boolean"),
            Column(name="Modes"),
            AGE,
        ),
        cells=_csi_driver,
    ),
    "CSINode": Printer(columns=(NAME, Column(name="Drivers", type="integer"), AGE), cells=_csi_node),
}

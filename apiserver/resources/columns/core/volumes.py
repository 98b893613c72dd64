"""The columns of persistent volumes and of the claims to them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import amount, items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree

_BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field; where it is present it still counts."""

_ACCESS_MODES: Final[Mapping[str, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _volume(volume: Tree, now: datetime) -> list[Any]:
    claim = part(volume, "spec", "claimRef")
    return [
        meta.name(volume),
        amount(volume, "spec", "capacity", "storage"),
        _modes(items(volume, "spec", "accessModes")),
        text(volume, "spec", "persistentVolumeReclaimPolicy"),
        _phase(volume),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _storage_class(volume),
        text(volume, "spec", "volumeAttributesClassName", default="<unset>"),
        text(volume, "status", "reason"),
        ages.age(volume, now),
        text(volume, "spec", "volumeMode", default="<unset>"),
    ]


def _claim(claim: Tree, now: datetime) -> list[Any]:
    volume = text(claim, "spec", "volumeName")
    return [
        meta.name(claim),
        _phase(claim),
        volume,
        amount(claim, "status", "capacity", "storage") if volume else "",
        _modes(items(claim, "status", "accessModes")) if volume else "",
        _storage_class(claim),
        text(claim, "spec", "volumeAttributesClassName", default="<unset>"),
        ages.age(claim, now),
        text(claim, "spec", "volumeMode", default="<unset>"),
    ]


def _modes(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _phase(tree: Tree) -> str:
    return "Terminating" if meta.is_deleting(tree) else text(tree, "status", "phase")


def _storage_class(tree: Tree) -> str:
    return text(meta.annotations(tree), _BETA_STORAGE_CLASS, default=text(tree, "spec", "storageClassName"))


PRINTERS: Final[Mapping[str, Printer]] = {
    "PersistentVolume": Printer(
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
            AGE,
            Column(name="VolumeMode", priority=1),
        ),
        cells=_volume,
    ),
    "PersistentVolumeClaim": Printer(
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
        cells=_claim,
    ),
}

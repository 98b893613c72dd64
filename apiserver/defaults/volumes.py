"""Defaults of volumes and of claims to them, in pods and on their own."""

from typing import Final

from apiserver.defaults.image import pull_policy
from apiserver.defaults.table import FILLED_BY_OWNER, Tree, of

_READABLE: Final = 0o644


def _volume(volume: Tree) -> None:
    """A volume of no kind is an empty directory: nothing but its name was given."""
    if len(volume) == 1:
        volume["emptyDir"] = {}


def _image(source: Tree) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


def _persistent_volume(volume: Tree) -> None:
    """Not for every spec of one: a volume that is written out in a VolumeAttachment stays as it is."""
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")


DEFAULTS: Final = of(
    "io.k8s.api.core.v1",
    {
        "Volume": _volume,
        "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "kind": "Shared"},
        "ConfigMapVolumeSource": {"defaultMode": _READABLE},
        "DownwardAPIVolumeSource": {"defaultMode": _READABLE},
        "HostPathVolumeSource": {"type": ""},
        "ImageVolumeSource": _image,
        "ProjectedVolumeSource": {"defaultMode": _READABLE},
        "SecretVolumeSource": {"defaultMode": _READABLE},
        "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
        "PersistentVolume": _persistent_volume,
        "PersistentVolumeSpec": FILLED_BY_OWNER,
        "PersistentVolumeStatus": {"phase": "Pending"},
        "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
        "PersistentVolumeClaimStatus": {"phase": "Pending"},
    },
)

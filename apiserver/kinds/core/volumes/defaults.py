"""The defaults of volumes in pods."""

from typing import Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import of
from mockube.apiserver.kinds.common.images import pull_policy

_READABLE: Final = 0o644


def _volume(volume: Tree) -> None:
    """Make a volume without a source an empty directory."""
    if len(volume) == 1:
        volume["emptyDir"] = {}


def _image(source: Tree) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


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
    },
)

"""The defaults of volumes in pods."""

from typing import Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import of
from mockube.apiserver.kinds.common.images import pull_policy

_DEFAULT_MODE: Final = 0o644


def _default_source(volume: Tree) -> None:
    """Make a volume without a source an empty directory."""
    if len(volume) == 1:
        volume["emptyDir"] = {}


def _default_pull_policy(source: Tree) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


DEFAULTS: Final = of(
    "io.k8s.api.core.v1",
    {
        "Volume": _default_source,
        "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "kind": "Shared"},
        "ConfigMapVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "DownwardAPIVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "HostPathVolumeSource": {"type": ""},
        "ImageVolumeSource": _default_pull_policy,
        "ProjectedVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "SecretVolumeSource": {"defaultMode": _DEFAULT_MODE},
        "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    },
)

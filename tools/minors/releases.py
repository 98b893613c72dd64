"""The patch release of each minor, from whose Go modules everything is derived."""

from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.schema import minors
from tools.minors.gomodules import Release

_OTHER_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.31": {"kube-aggregator": "0.31.0"},
    "1.29": {"apiextensions-apiserver": "0.29.6", "kube-aggregator": "0.29.6"},
}
"""Modules that were not published for the patch release, with the version that is read instead."""

CURRENT, *OLDER = (
    Release(minor, version, _OTHER_MODULES.get(minor, {})) for minor, version in minors.RELEASES.items()
)

"""The newest patch releases of Kubernetes that are published, beside those that are served."""

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tools.minors.gomodules import go
from tools.minors.releases import CURRENT, OLDER

_RELEASED: Final = re.compile(r"v(1\.\d+)\.(\d+)")


def published_versions() -> list[str]:
    listed = go("list", "-m", "-versions", "k8s.io/kubernetes", folder=Path(tempfile.gettempdir()))
    return listed.decode().split()[1:]


def newer_releases(versions: Iterable[str], served: Mapping[str, str]) -> Mapping[str, str]:
    """Return by minor the newest of these versions that is newer than the served patch, also of minors that are not served yet."""
    newest: dict[str, int] = {}
    for version in versions:
        if match := _RELEASED.fullmatch(version):
            newest[match[1]] = max(newest.get(match[1], 0), int(match[2]))
    served_patches = {minor: _patch(version) for minor, version in served.items()}
    oldest = min(map(_number, served))
    return {
        minor: f"{minor}.{patch}"
        for minor, patch in newest.items()
        if patch > served_patches.get(minor, -1) and _number(minor) >= oldest
    }


def newer_published() -> Mapping[str, str]:
    served = {release.minor: release.version for release in (CURRENT, *OLDER)}
    return newer_releases(published_versions(), served)


def _patch(version: str) -> int:
    """Return the number of a patch release; -1 for an alpha, which every release of its minor is newer than."""
    return int(version.rpartition(".")[2]) if _RELEASED.fullmatch(f"v{version}") else -1


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])

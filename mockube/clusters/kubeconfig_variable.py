"""The cluster to which $KUBECONFIG leads: one of this machine, another server of mockube, or none of mockube.

A user who has exported the kubeconfig of a cluster expects the same cluster of kubectl and of mockube's commands.
"""

import http.client
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from mockube.client.kubeconfig import Access, KubeconfigError, read
from mockube.failure import Failure

from .health import get
from .named_cluster import ClusterFolder, cluster_folders, clusters_folder

VARIABLE: Final = "KUBECONFIG"
_COMMIT_PREFIX: Final = "mockube-"
"""How the gitCommit of the version begins that a server of mockube returns."""


class KubeconfigTarget(NamedTuple):
    """The kubeconfig that $KUBECONFIG names, and to what it leads."""

    path: Path
    access: Access
    folder: ClusterFolder | None
    """The cluster of this machine; None for another server."""


def read_target(environment: Mapping[str, str]) -> KubeconfigTarget | None:
    """Return to what $KUBECONFIG leads; None if it is not set. Raise Failure for what is no usable kubeconfig."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    if os.pathsep in text:
        raise Failure(f"${VARIABLE} names several files")
    path = Path(text).expanduser()
    try:
        access = read(path)
    except KubeconfigError as error:
        raise Failure(f"${VARIABLE}: {error}") from error
    folders = cluster_folders(environment)
    return KubeconfigTarget(path, access, next((each for each in folders if _is_of(access, each)), None))


def gone_cluster(environment: Mapping[str, str]) -> str:
    """Return the name of the cluster whose file $KUBECONFIG names, if the cluster was deleted; "" otherwise."""
    path = Path(environment.get(VARIABLE, "")).expanduser()
    name = path.parent.name
    folder = ClusterFolder(name=name, path=clusters_folder(environment) / name)
    is_gone = bool(name) and not path.exists() and path == folder.kubeconfig
    return name if is_gone else ""


def _is_of(access: Access, folder: ClusterFolder) -> bool:
    """Return whether the server is that of a cluster, running or not; a moment of the past has a longer path."""
    try:
        own_access = read(folder.kubeconfig)
    except KubeconfigError:  # it was never ready
        return False
    is_below = f"{access.server}/".startswith(f"{own_access.server}/")
    return is_below and access.authority == own_access.authority


def check_is_mockube(access: Access) -> None:
    """Raise Failure if a server is not mockube's, by its version, which everybody may read."""
    try:
        status, body = get(access.anonymous(), "/version")
        commit = msgspec.json.decode(body, type=_Version).git_commit if status == http.client.OK else ""
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failure(f"${VARIABLE} leads to {access.server}, which does not respond: {error}") from error
    if not commit.startswith(_COMMIT_PREFIX):
        raise Failure(f"${VARIABLE} leads to {access.server}, which is no server of mockube")


class _Version(msgspec.Struct, rename="camel"):
    git_commit: str = ""

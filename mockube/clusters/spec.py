"""The options of one run of a named cluster."""

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from mockube.kubelet.node_pools.pool import NodePools
from mockube.launch import MINIMAL

from .profiles import Profile


class ReadyCondition(StrEnum):
    """The condition by which a cluster counts as ready."""

    SERVER = "server"
    """The API server responds."""
    NODES = "nodes"
    """Pods can also be created and scheduled."""


class ClusterSpec(Struct, frozen=True, kw_only=True):
    """The options of a named cluster."""

    version: str
    nodes: NodePools
    packs: str
    flags: Sequence[str]
    """Flags of the API server, including its port."""
    manager_flags: Sequence[str]
    store: str
    """The store, as in `ClusterRecord.store`."""
    data_dir: Path | None = None
    """The folder of the store, if there is one."""
    profile: Profile = Profile(MINIMAL)
    one_process: bool = False
    """Whether both programs run in one process."""
    detached: bool = False
    copy_to: Path | None = None
    """The file for a copy of the cluster's kubeconfig, if any."""
    until: ReadyCondition = ReadyCondition.NODES
    seconds: float = math.inf
    """The timeout until the cluster is ready."""
    replaces_nodes: bool = False
    """Whether the nodes replace those that the store requests."""
    fork_of: str = ""
    """The cluster of which it is a fork; "" if it is none."""
    notes_times: bool = False
    """Whether to report how long the start takes."""

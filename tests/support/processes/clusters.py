"""Records of clusters that were started a moment ago."""

import os

from msgspec.structs import replace

from mockube.clusters.named_cluster import ClusterRecord, Component


def starting():
    """The record is of this process, which may be a fork of the one that imported this module."""
    return ClusterRecord(
        pid=os.getpid(), version="1", started="", detached=True, nodes=3, packs="", store="memory"
    )


def ready(url="", **processes):
    """Process ids by the names of the processes."""
    components = {name: Component(pid=pid) for name, pid in processes.items()}
    return replace(starting(), ready=True, url=url, components=components)

"""`mockube list`: list the clusters of this machine."""

import argparse
import os

import msgspec

from mockube.clusters.health import count_nodes
from mockube.clusters.kubeconfigs import read_url
from mockube.clusters.named_cluster import (
    ClusterRecord,
    ClusterState,
    FoundCluster,
    cluster_folders,
    inspect_cluster,
)

from .output import table
from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_output

HEAD = ("NAME", "STATE", "URL", "NODES", "STORE")


def add_flags(parser: CommandParser) -> None:
    add_output(parser, "name")


def run(options: argparse.Namespace) -> int:
    clusters = [inspect_cluster(folder) for folder in cluster_folders(os.environ)]
    match options.output:
        case "json":
            print(msgspec.json.encode([_tree(cluster) for cluster in clusters]).decode())
        case "name":
            print("".join(f"{cluster.folder.name}\n" for cluster in clusters), end="")
        case _ if clusters:
            print(table([HEAD, *map(_row, clusters)]))
        case _:
            print_line("no cluster: `mockube up` starts one")
    return 0


def _row(cluster: FoundCluster) -> tuple[str, ...]:
    running = cluster.record
    return (
        cluster.folder.name,
        cluster.state,
        read_url(cluster.folder) or "-",
        _nodes(cluster),
        _store(running) if running else "-",
    )


def _store(running: ClusterRecord) -> str:
    return f"{running.store}, fork of {running.fork_of}" if running.fork_of else running.store


def _nodes(cluster: FoundCluster) -> str:
    """Return the number of nodes that the server has: `mockube nodes` and others change it."""
    nodes = count_nodes(cluster.folder.kubeconfig) if cluster.state is ClusterState.RUNNING else None
    return "-" if nodes is None else str(nodes)


def _tree(cluster: FoundCluster) -> dict[str, object]:
    return {
        "name": cluster.folder.name,
        "state": cluster.state,
        "url": read_url(cluster.folder),
        "kubeconfig": str(cluster.folder.kubeconfig),
        "forkOf": cluster.record.fork_of if cluster.record else "",
    }

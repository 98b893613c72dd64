"""`mockube list`: every cluster of this machine."""

import argparse
import os

import msgspec

from mockube.cli.output import table
from mockube.cli.parsing import Parser
from mockube.cli.progress import print_line
from mockube.cli.shared_flags import add_output
from mockube.clusters.folders import cluster_folders
from mockube.clusters.found import FoundCluster, look
from mockube.clusters.kubeconfigs import read_url

HEAD = ("NAME", "STATE", "URL", "NODES", "STORE")


def add_flags(parser: Parser) -> None:
    add_output(parser, "name")


def run(options: argparse.Namespace) -> int:
    found = [look(folder) for folder in cluster_folders(os.environ)]
    match options.output:
        case "json":
            print(msgspec.json.encode([_tree(one) for one in found]).decode())
        case "name":
            print("".join(f"{one.folder.name}\n" for one in found), end="")
        case _ if found:
            print(table([HEAD, *map(_row, found)]))
        case _:
            print_line("no cluster: `mockube up` starts one")
    return 0


def _row(found: FoundCluster) -> tuple[str, ...]:
    running = found.record
    return (
        found.folder.name,
        found.state,
        read_url(found.folder) or "-",
        str(running.nodes) if running else "-",
        running.store if running else "-",
    )


def _tree(found: FoundCluster) -> dict[str, object]:
    return {
        "name": found.folder.name,
        "state": found.state,
        "url": read_url(found.folder),
        "kubeconfig": str(found.folder.kubeconfig),
    }

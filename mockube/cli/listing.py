"""`mockube list`: every cluster of this machine."""

import argparse
import os

import msgspec

from mockube.cli.output import table
from mockube.cli.parsing import Parser
from mockube.cli.progress import print_line
from mockube.cli.shared_flags import add_output
from mockube.clusters.found import FoundCluster, look
from mockube.clusters.kubeconfigs import read_url
from mockube.clusters.places import places

HEAD = ("NAME", "STATE", "URL", "NODES", "STORE")


def add_flags(parser: Parser) -> None:
    add_output(parser, "name")


def run(options: argparse.Namespace) -> int:
    found = [look(place) for place in places(os.environ)]
    match options.output:
        case "json":
            print(msgspec.json.encode([_tree(one) for one in found]).decode())
        case "name":
            print("".join(f"{one.place.name}\n" for one in found), end="")
        case _ if found:
            print(table([HEAD, *map(_row, found)]))
        case _:
            print_line("no cluster: `mockube up` starts one")
    return 0


def _row(found: FoundCluster) -> tuple[str, ...]:
    running = found.record
    return (
        found.place.name,
        found.state,
        read_url(found.place) or "-",
        str(running.nodes) if running else "-",
        running.store if running else "-",
    )


def _tree(found: FoundCluster) -> dict[str, object]:
    return {
        "name": found.place.name,
        "state": found.state,
        "url": read_url(found.place),
        "kubeconfig": str(found.place.kubeconfig),
    }

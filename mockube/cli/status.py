"""`mockube status`: is a cluster there, and is it well?"""

import argparse
import os

import msgspec

from mockube.cli.output import Code, table
from mockube.cli.parsing import Parser
from mockube.cli.shared_flags import add_name, add_output
from mockube.clusters.found import FoundCluster, State, find
from mockube.clusters.health import Health, examine
from mockube.clusters.record import Record


def add_flags(parser: Parser) -> None:
    add_name(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    found = find(options.name, os.environ)
    health = Health() if found.state is State.STOPPED else examine(found)
    if options.output == "json":
        print(msgspec.json.encode(_tree(found, health)).decode())
    else:
        print(_status_table(found, health))
    if found.state is State.STOPPED:
        return Code.NOT_FOUND
    return Code.UNHEALTHY if health.problems else Code.OK


def _status_table(found: FoundCluster, health: Health) -> str:
    folder, running = found.folder, found.record
    rows = [(f"{folder.name}:", f"{found.state}{', unhealthy' if health.problems else ''}")]
    rows += [("problem", problem) for problem in health.problems]
    if running is not None:
        rows += _facts(running, health)
    rows += [("kubeconfig", str(folder.kubeconfig)), ("logs", str(folder.logs))]
    return table(rows)


def _facts(running: Record, health: Health) -> list[tuple[str, str]]:
    return [
        ("url", running.url or "-"),
        ("since", running.started),
        ("nodes", f"{health.nodes_ready} of {health.nodes} ready"),
        ("store", running.store),
        ("processes", ", ".join([f"mockube {running.pid}", *_processes(running)])),
    ]


def _processes(running: Record) -> list[str]:
    return [
        f"{name} {one.pid or '-'}{f' (restarted {one.restarts} times)' if one.restarts else ''}"
        for name, one in running.components.items()
    ]


def _tree(found: FoundCluster, health: Health) -> dict[str, object]:
    return {
        "name": found.folder.name,
        "state": found.state,
        "healthy": found.state is State.RUNNING and not health.problems,
        "problems": health.problems,
        "url": found.record.url if found.record else "",
        "nodes": health.nodes,
        "nodesReady": health.nodes_ready,
        "kubeconfig": str(found.folder.kubeconfig),
        "logs": str(found.folder.logs),
        "record": found.record,
    }

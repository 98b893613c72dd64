"""`mockube status`: print whether a cluster runs and is healthy."""

import argparse
import os

import msgspec

from mockube.clusters.health import ClusterHealth, check_health
from mockube.clusters.named_cluster import ClusterRecord, ClusterState, FoundCluster, find_cluster

from .output import Code, table
from .parsing import CommandParser
from .shared_flags import add_chosen_name, add_output, add_short_name
from .target import chosen_name


def add_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    add_short_name(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    cluster = find_cluster(chosen_name(options), os.environ)
    health = ClusterHealth() if cluster.state is ClusterState.STOPPED else check_health(cluster)
    if options.output == "json":
        print(msgspec.json.encode(_tree(cluster, health)).decode())
    else:
        print(_status_table(cluster, health))
    if cluster.state is ClusterState.STOPPED:
        return Code.NOT_FOUND
    return Code.UNHEALTHY if health.problems else Code.OK


def _status_table(cluster: FoundCluster, health: ClusterHealth) -> str:
    folder, running = cluster.folder, cluster.record
    rows = [(f"{folder.name}:", f"{cluster.state}{', unhealthy' if health.problems else ''}")]
    rows += [("problem", problem) for problem in health.problems]
    if running is not None:
        rows += _facts(running, health)
    rows += [("kubeconfig", str(folder.kubeconfig)), ("logs", str(folder.logs))]
    return table(rows)


def _facts(running: ClusterRecord, health: ClusterHealth) -> list[tuple[str, str]]:
    return [
        ("url", running.url or "-"),
        ("since", running.started),
        ("nodes", f"{health.nodes_ready} of {health.nodes} ready"),
        *assumed_rows(health),
        *not_simulated_rows(health),
        *_not_reconciled(health),
        ("store", running.store),
        ("processes", ", ".join([f"mockube {running.pid}", *_processes(running)])),
    ]


def assumed_rows(health: ClusterHealth) -> list[tuple[str, str]]:
    """Return the row of the pods that are ready by assumption."""
    count = len(health.assumed)
    if not count:
        return []
    place, _, text = health.assumed[0].partition(": ")
    namespace, _, name = place.partition("/")
    subject = "1 pod is" if count == 1 else f"{count} pods are, such as {place}"
    hint = f"mockube why pod/{name} -n {namespace}"
    return [("ready by assumption", f"{subject}: {text}: {hint}")]


def not_simulated_rows(health: ClusterHealth) -> list[tuple[str, str]]:
    count = len({line.partition(": ")[0] for line in health.not_simulated})
    hint = "kubectl get events -A --field-selector reason=NotSimulated"
    return [("not simulated", f"parts of {count} object{'s' if count > 1 else ''}: {hint}")] if count else []


def _not_reconciled(health: ClusterHealth) -> list[tuple[str, str]]:
    count = len(health.not_reconciled)
    hint = "kubectl get events -A --field-selector reason=NotReconciled"
    guide = "to run their operators: docs/guides/operators.md"
    return [("not reconciled", f"{count} object{'s' if count > 1 else ''}: {hint}; {guide}")] if count else []


def _processes(running: ClusterRecord) -> list[str]:
    return [
        f"{name} {component.pid or '-'}{f' (restarted {component.restarts} times)' if component.restarts else ''}"
        for name, component in running.components.items()
    ]


def _tree(cluster: FoundCluster, health: ClusterHealth) -> dict[str, object]:
    return {
        "name": cluster.folder.name,
        "state": cluster.state,
        "healthy": cluster.state is ClusterState.RUNNING and not health.problems,
        "problems": health.problems,
        "url": cluster.record.url if cluster.record else "",
        "nodes": health.nodes,
        "nodesReady": health.nodes_ready,
        "assumed": health.assumed,
        "notSimulated": health.not_simulated,
        "notReconciled": health.not_reconciled,
        "kubeconfig": str(cluster.folder.kubeconfig),
        "logs": str(cluster.folder.logs),
        "record": cluster.record,
    }

"""A Deployment on nodes in three zones, its rolling update, the failure of a zone and its recovery; and the guide's table of them."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from . import workloads
from .processes import MANAGER, ROOT, SERVER, ControlPlane, mockube_up
from .workloads import Row

GUIDE = ROOT / "docs/guides/scale.md"
NODES = 5_000
POOL = "zone=a,zone=b,zone=c"
EVICTION_RATE = "--node-eviction-rate=1000"
ZONE = "c"
IN_ZONE = f"/api/v1/nodes?resourceVersion=0&labelSelector=topology.kubernetes.io/zone%3D{ZONE}"
STOP_HEARTBEATS = "mockube.dev/stop-heartbeats"


def measure_zone_failure(pods: int, nodes: int = NODES) -> Row:
    """Measure each step of the guide. Node lifecycle takes 50 s and five minutes of it, as in a real cluster."""
    with TemporaryDirectory() as folder, mockube_up(f"{POOL}:{nodes}", Path(folder), EVICTION_RATE) as plane:
        row: Row = {"nodes": nodes, "pods": pods, "steps": []}

        def add(name: str, step: Row) -> None:
            row["steps"].append({"name": name, **step, "megabytes": plane.megabytes()})
            print(f"  {name}: {step['seconds']} s", flush=True)

        add(f"{nodes:,} nodes are ready", workloads.wait_for_nodes(plane, nodes))
        workloads.create_namespace(plane)
        add(f"{pods:,} pods are ready", workloads.bring_up(plane, pods))
        add("a rolling update", workloads.roll_out(plane, pods))
        add(
            f"zone {ZONE} fails, until its nodes and pods are not ready",
            workloads.step(plane, _set_heartbeats(plane, stop="true"), lambda: _has_failed(plane, pods)),
        )
        add(
            "until as many pods are ready in the other zones",
            workloads.step(plane, _nothing, lambda: workloads.ready_pods(plane) == pods),
        )
        add(
            f"zone {ZONE} recovers, until its nodes are ready",
            workloads.step(
                plane,
                _set_heartbeats(plane, stop=None),
                lambda: workloads.ready_nodes(plane) == nodes,
            ),
        )
    return row


def _nothing() -> None:
    pass


def _set_heartbeats(plane: ControlPlane, *, stop: str | None) -> Callable[[], None]:
    """Return a function that annotates the nodes of the zone."""

    def annotate() -> None:
        change = {"metadata": {"annotations": {STOP_HEARTBEATS: stop}}}
        for node in plane.client.call("GET", IN_ZONE)["items"]:
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            plane.client.call("PATCH", path, change, "merge-patch+json")

    return annotate


def _has_failed(plane: ControlPlane, pods: int) -> bool:
    """Return whether no node of the zone is ready, and about a third of the pods is not."""
    return not workloads.ready_nodes(plane, IN_ZONE) and workloads.ready_pods(plane) < pods * 0.7


# --- the table of the guide


def table(row: Row) -> str:
    """Return the steps as a table in Markdown."""
    lines = [
        "| | time | CPU time of the server | of the manager | memory of the server | of the manager |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for step in row["steps"]:
        cells = (
            step["name"],
            f"{step['seconds']:.0f} s",
            *(f"{step['cpu'][name]:.0f} s" for name in (SERVER, MANAGER)),
            *(f"{step['megabytes'][name]:,.0f} MB" for name in (SERVER, MANAGER)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, row: Row) -> str:
    """Return the guide with the table of the results in place of the one it has."""
    first_line = re.escape(table({"steps": []}).partition("\n")[0])
    return re.sub(rf"{first_line}\n(\|.*\n)*", lambda _: table(row), page)

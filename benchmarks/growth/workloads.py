"""A Deployment on many nodes, and a Deployment of many pods: how long and how much CPU time and memory it takes."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from .processes import START_TIMEOUT, ControlPlane, wait_until

Row = dict[str, Any]
Start = Callable[[int], AbstractContextManager[ControlPlane]]
"""Starts a control plane for a number of nodes, which need not be ready yet."""

NODES = "/api/v1/nodes?resourceVersion=0"
NAMESPACE = "growth"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
WEB = f"{DEPLOYMENTS}/web"
PODS_PER_NODE_RUN, NODES_PER_POD_RUN = 1_000, 1_000
PAUSE, NODES_PAUSE = 0.1, 0.0004
"""Seconds between two looks at the state, and the same for each node of a list of all nodes, which is not cheap."""
QUIET_SECONDS, QUIET_SPANS = 3.0, 10
"""A cluster is idle when no Event was written for this time."""


def measure(start: Start, nodes: int, pods: int, idle_seconds: float, *, only_creation: bool = False) -> Row:
    """Start nodes, and create a Deployment of some pods; update and delete it, too, unless only its creation counts."""
    with start(nodes) as plane:
        row: Row = {"nodes": nodes, "pods": pods, "start": wait_for_nodes(plane, nodes)}
        create_namespace(plane)
        settle(plane)
        row["megabytes_nodes"] = plane.megabytes()
        row["up"] = bring_up(plane, pods)
        settle(plane)
        row["megabytes"] = plane.megabytes()
        row["idle"] = idle_share(plane, idle_seconds)
        if not only_creation:
            row["rollout"] = roll_out(plane, pods)
            row["gone"] = delete(plane)
    times = ", ".join(
        f"{name} {row[name]['seconds']} s" for name in ("start", "up", "rollout", "gone") if name in row
    )
    print(f"  {nodes} nodes, {pods} pods: {times}", flush=True)
    return row


def wait_for_nodes(plane: ControlPlane, nodes: int) -> Row:
    """Wait until all nodes are ready; the CPU time is that of the whole start."""
    seconds = wait_until(
        lambda: ready_nodes(plane) == nodes,
        f"{nodes} nodes",
        pause=max(PAUSE, NODES_PAUSE * nodes),
        timeout=START_TIMEOUT,
    )
    return {"seconds": round(seconds, 2), "cpu": plane.cpu_seconds()}


def bring_up(plane: ControlPlane, pods: int) -> Row:
    """Create a Deployment, and wait until all pods are ready."""

    return step(
        plane,
        lambda: plane.client.call("POST", DEPLOYMENTS, _deployment(pods)),
        lambda: ready_pods(plane) == pods,
    )


def roll_out(plane: ControlPlane, pods: int) -> Row:
    """Change the image of the Deployment, and wait until all pods have it."""
    template = {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    change = {"spec": {"template": template}}
    return step(
        plane,
        lambda: plane.client.call("PATCH", WEB, change, "strategic-merge-patch+json"),
        lambda: _is_rolled_out(plane, pods),
    )


def delete(plane: ControlPlane) -> Row:
    """Delete the Deployment, and wait until there are no pods."""
    return step(
        plane,
        lambda: plane.client.call("DELETE", WEB, {"propagationPolicy": "Background"}),
        lambda: not _has_pods(plane),
    )


def step(plane: ControlPlane, begin: Callable[[], object], is_done: Callable[[], bool]) -> Row:
    """Return the time and the CPU time of what begins with a request."""
    before = plane.cpu_seconds()
    began = time.perf_counter()
    begin()
    wait_until(is_done, "a step", pause=PAUSE)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 2), "cpu": _difference(plane.cpu_seconds(), before)}


def _difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value - before[name], 2) for name, value in after.items()}


def settle(plane: ControlPlane) -> None:
    """Wait until no more Events are written, at most half a minute: those of many nodes take longer, but cost little."""
    last = -1
    for _ in range(QUIET_SPANS):
        count = _count(plane, "/api/v1/events")
        if count == last:
            return
        last = count
        time.sleep(QUIET_SECONDS)


def _count(plane: ControlPlane, path: str) -> int:
    """Return the number of objects of a list."""
    page = plane.client.call("GET", f"{path}?limit=1")
    rest: int = page["metadata"].get("remainingItemCount", 0)
    return len(page["items"]) + rest


def idle_share(plane: ControlPlane, seconds: float) -> dict[str, float]:
    """Return the share of a core that each process uses while nothing is requested."""
    before, began = plane.cpu_seconds(), time.perf_counter()
    time.sleep(seconds)
    used, passed = _difference(plane.cpu_seconds(), before), time.perf_counter() - began
    return {name: round(value / passed, 4) for name, value in used.items()}


# --- what is created


def ready_nodes(plane: ControlPlane, path: str = NODES) -> int:
    return sum(map(_is_ready, plane.client.call("GET", path)["items"]))


def ready_pods(plane: ControlPlane) -> int:
    count: int = plane.client.call("GET", WEB).get("status", {}).get("readyReplicas", 0)
    return count


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def create_namespace(plane: ControlPlane) -> None:
    plane.client.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts?fieldSelector=metadata.name%3Ddefault"
    wait_until(lambda: bool(plane.client.call("GET", account)["items"]), "the ServiceAccount")


def _deployment(replicas: int) -> Row:
    labels = {"app": "web"}
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def _is_rolled_out(plane: ControlPlane, pods: int) -> bool:
    deployment = plane.client.call("GET", WEB)
    status, generation = deployment["status"], deployment["metadata"]["generation"]
    counts = {status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    return status["observedGeneration"] == generation and counts == {pods}


def _has_pods(plane: ControlPlane) -> bool:
    return _count(plane, f"/api/v1/namespaces/{NAMESPACE}/pods") > 0

"""A program that uses every method of the Python API: type checkers check it, and no test runs it."""

import asyncio
from pathlib import Path
from typing import Any, assert_type

from mockube import AsyncCluster, Cluster, Connection, ExecResult, NotFound, WaitFailed, connect

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "a"}]},
}


def is_running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"]["phase"] == "Running")


def use_objects(cluster: Cluster | Connection) -> None:
    assert_type(cluster.apply(POD), list[dict[str, Any]])
    cluster.apply([POD, "a: b", Path("shop")], namespace="shop")
    cluster.create(POD for _ in range(3))
    assert_type(cluster.get("Pod", "a"), dict[str, Any])
    assert_type(cluster.get(POD), dict[str, Any])
    assert_type(cluster.wait("Pod", "a", is_running, timeout=5), dict[str, Any])
    assert_type(cluster.wait(POD, "Ready"), dict[str, Any])
    cluster.wait("pod/a", lambda pod: pod["status"])
    assert_type(cluster.list("Pod", labels={"app": "web"}), list[dict[str, Any]])
    cluster.patch("Pod", "a", {"metadata": {"labels": {"app": "web"}}}, type="merge")
    cluster.patch("pod/a", [{"op": "remove", "path": "/metadata/labels"}])
    cluster.scale("Deployment", "web", 3)
    cluster.scale("deployment/web", 3)
    cluster.rollout_restart("deployment/web")
    cluster.delete("Pod", "a", ignore_not_found=True)
    cluster.delete([POD])
    cluster.wait_gone(POD, timeout=1)
    assert_type(cluster.logs("a", tail=3), str)
    assert_type(cluster.exec("a", ["ls", "/"]), ExecResult)
    with cluster.port_forward("a", 80) as forward:
        assert_type(forward.url, str)
    try:
        cluster.get("Pod", "b")
    except (NotFound, WaitFailed) as error:
        raise SystemExit(str(error)) from error


def use_cluster(cluster: Cluster) -> None:
    calls = cluster.calls(verb=["get", "list"], resource="pods", code=200)
    assert_type(calls[0].user, str)
    with cluster.inject(verb="update", status=409, times=2) as fault:
        assert_type(fault.hits, int)
    with cluster.as_default():
        cluster.advance(60)


async def use_awaited(cluster: AsyncCluster) -> None:
    async with cluster.as_default():
        cluster.inject(resource="pods", verb=("create", "patch"), delay=1)
    assert_type(await cluster.apply(POD), list[dict[str, Any]])
    assert_type(await cluster.wait("Pod", "a", "Ready"), dict[str, Any])
    assert_type(await cluster.exec("a", "ls"), ExecResult)
    async with cluster.port_forward("a", 80) as forward:
        assert_type(forward.port, int)


async def main() -> None:
    async with Cluster(nodes=1, flags=["--event-ttl=5m"]) as cluster:
        await use_awaited(cluster)


def make_mistakes(cluster: Cluster) -> None:
    """Call methods in ways that a type checker must refuse: one that accepts them reports the comment as unnecessary."""
    cluster.get("Pod", 5)  # type: ignore[call-overload]
    cluster.apply(5)  # type: ignore[arg-type]
    cluster.wait("Pod", "a", 5)  # type: ignore[call-overload]
    cluster.scale("Deployment", "web", "3")  # type: ignore[call-overload]
    cluster.patch("Pod", "a", {}, type="apply")  # type: ignore[call-overload]
    Cluster(nodes=3.5)  # type: ignore[arg-type]
    cluster.inject(verb="updat", status=409)  # type: ignore[arg-type]
    cluster.calls(verb=["put"])  # type: ignore[list-item]
    cluster.lst("Pod")  # type: ignore[attr-defined]


if __name__ == "__main__":
    with Cluster() as here, connect("blue") as there:
        use_objects(here)
        use_objects(there)
        use_cluster(here)
    asyncio.run(main())

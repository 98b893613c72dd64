"""The number of simulated nodes: read from the API server, and set by a ConfigMap that the manager watches.

Independent of processes: it works with any API server that has a controller manager of ours with simulated nodes.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import Expired, Gone, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.reflector import parse_watch_event, split_lines
from mockube.controller_manager.client.client import Client, Parsed
from mockube.controller_manager.client.kinds import CONFIG_MAPS, NODES
from mockube.controller_manager.config.settings import Simulation
from mockube.controller_manager.kubelet.node_objects import is_simulated
from mockube.controller_manager.kubelet.resizing import RESIZING, desired_nodes, number_in
from mockube.controller_manager.supervision import timeout
from mockube.failure import TimedOut

OWNER: Final = "mockube-nodes"
"""The fields of the ConfigMap: each change writes all of them."""
ASKED_AT: Final = "mockube.dev/asked-at"
"""The annotation that makes a repeated request a change."""
STREAM_SECONDS: Final = 60.0


async def ask_for(client: Client, nodes: int, more: Mapping[str, str], clock: Clock) -> None:
    """`more` is further data of the ConfigMap: zones, labels."""
    metadata = {
        "name": RESIZING.name,
        "namespace": RESIZING.namespace,
        "annotations": {ASKED_AT: format_time(clock.now())},
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"nodes": str(nodes), **more},
    }
    await client.patch(CONFIG_MAPS, RESIZING, body, kind="apply", field_manager=OWNER, force=True)


async def wanted_by(client: Client, flag: int) -> int:
    """Return the desired number of nodes; `flag` is the number of the manager's flag."""
    try:
        config_map = await client.get(CONFIG_MAPS, RESIZING)
    except NotFound:
        config_map = None
    return desired_nodes(config_map, Simulation(simulate_nodes=flag)).nodes


async def count(client: Client) -> int:
    return len(_ready_by_name((await client.list(NODES)).items))


async def wait_for(client: Client, nodes: int, *, clock: Clock, seconds: float) -> None:
    """Until there are so many, and all of them are ready."""
    seen: dict[str, bool] = {}
    try:
        async with timeout(clock, seconds), aclosing(_as_they_change(client)) as changes:
            async for seen in changes:
                if len(seen) == nodes and all(seen.values()):
                    return
    except TimeoutError as error:
        there = f"{sum(seen.values())} of {len(seen)} nodes are ready"
        raise TimedOut(
            f"{there} after {seconds:g} s, but {nodes} were requested: "
            "is a controller manager with --simulate-nodes running?"
        ) from error


async def _as_they_change(client: Client) -> AsyncGenerator[dict[str, bool], None]:
    """By name whether each is ready, now and after every change."""
    while True:
        node_list = await client.list(NODES)
        seen = _ready_by_name(node_list.items)
        yield seen
        query = {"resourceVersion": node_list.resource_version}
        try:
            async with client.watch(NODES, query, within=STREAM_SECONDS) as stream:
                async for batch in split_lines(stream.chunks()):
                    for line in batch:
                        event_type, node, _ = parse_watch_event(line)
                        seen.pop(meta.name(node), None)
                        seen |= {} if event_type == "DELETED" else _ready_by_name([node])
                    yield seen
        except (Expired, Gone):
            continue


def _ready_by_name(nodes: list[Parsed]) -> dict[str, bool]:
    return {
        meta.name(node): _is_ready(node)
        for node in nodes
        if number_in(meta.name(node)) is not None and is_simulated(node)
    }


def _is_ready(node: ReadOnlyTree) -> bool:
    return conditions.is_true(node, "Ready")

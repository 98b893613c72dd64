"""The pools of simulated nodes: read from the API server, and set by a ConfigMap that the manager watches.

It works with any API server that has a controller manager of mockube with simulated nodes.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import Expired, Gone, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.reflector import parse_watch_event, split_lines
from mockube.client.kinds import CONFIG_MAPS, NODES
from mockube.client.verbs import Client, Parsed
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.failure import TimedOut
from mockube.kubelet.node_objects import is_simulated
from mockube.kubelet.node_pools.pool import NodePools
from mockube.kubelet.node_shapes import recorded_shape, shaped_nodes
from mockube.kubelet.resizing import NODES as NODES_KEY
from mockube.kubelet.resizing import NODES_CONFIG_MAP, desired_nodes, pool_member

FIELD_MANAGER: Final = "mockube-nodes"
"""The field manager of the ConfigMap. Each request sets all fields."""
REQUESTED_AT: Final = "mockube.dev/asked-at"
"""An annotation with the time of the request, so that a repeated request is a change."""
STREAM_SECONDS: Final = 60.0


async def request_nodes(client: Client, pools: NodePools, clock: Clock) -> None:
    metadata = {
        "name": NODES_CONFIG_MAP.name,
        "namespace": NODES_CONFIG_MAP.namespace,
        "annotations": {REQUESTED_AT: format_time(clock.now())},
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {NODES_KEY: pools.content},
    }
    await client.patch(
        CONFIG_MAPS, NODES_CONFIG_MAP, body, kind="apply", field_manager=FIELD_MANAGER, force=True
    )


async def desired_pools(client: Client, flag: NodePools) -> NodePools:
    """Return the pools that are desired; `flag` is the value of the manager's --simulate-nodes."""
    try:
        config_map = await client.get(CONFIG_MAPS, NODES_CONFIG_MAP)
    except NotFound:
        config_map = None
    return desired_nodes(config_map, flag).pools


async def count_nodes(client: Client) -> int:
    return sum(map(_is_of_pool, (await client.list(NODES)).items))


async def wait_for_nodes(client: Client, pools: NodePools, *, clock: Clock, seconds: float) -> None:
    """Wait until there are exactly the nodes of the pools, and all of them are ready; raise TimedOut otherwise."""
    shapes = {node.name: node.shape for node in shaped_nodes(pools)}
    ready_by_name: dict[str, bool] = {}
    try:
        async with timeout(clock, seconds), aclosing(_watch_readiness(client, shapes)) as changes:
            async for ready_by_name in changes:
                if ready_by_name.keys() == shapes.keys() and all(ready_by_name.values()):
                    return
    except TimeoutError as error:
        summary = f"{sum(ready_by_name.values())} of {len(ready_by_name)} nodes are ready"
        raise TimedOut(
            f"{summary} after {seconds:g} s, but {pools.count} were requested: "
            "is a controller manager with --simulate-nodes running?"
        ) from error


async def _watch_readiness(
    client: Client, shapes: Mapping[str, str]
) -> AsyncGenerator[dict[str, bool], None]:
    """Yield whether each node of a pool is ready, and has its shape, by name: at once, and after every change."""
    while True:
        node_list = await client.list(NODES)
        ready_by_name = _ready_by_name(node_list.items, shapes)
        yield ready_by_name
        query = {"resourceVersion": node_list.resource_version}
        try:
            async with client.watch(NODES, query, timeout_seconds=STREAM_SECONDS) as stream:
                async for batch in split_lines(stream.chunks()):
                    for line in batch:
                        event_type, node, _ = parse_watch_event(line)
                        ready_by_name.pop(meta.name(node), None)
                        ready_by_name |= {} if event_type == "DELETED" else _ready_by_name([node], shapes)
                    yield ready_by_name
        except (Expired, Gone):
            continue


def _ready_by_name(nodes: list[Parsed], shapes: Mapping[str, str]) -> dict[str, bool]:
    return {
        name: conditions.is_true(node, "Ready") and recorded_shape(node) == shapes.get(name, "")
        for node in nodes
        if _is_of_pool(node) and (name := meta.name(node))
    }


def _is_of_pool(node: Parsed) -> bool:
    return is_simulated(node) and pool_member(node) is not None

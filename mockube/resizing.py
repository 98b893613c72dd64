"""The number of simulated nodes: read from the API server, and set by a ConfigMap that the manager watches.

It works with any API server that has a controller manager of mockube with simulated nodes.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import Expired, Gone, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.controller_manager.cache.reflector import parse_watch_event, split_lines
from mockube.controller_manager.client.client import Client, Parsed
from mockube.controller_manager.client.kinds import CONFIG_MAPS, NODES
from mockube.controller_manager.config.settings import Simulation
from mockube.controller_manager.kubelet.node_objects import is_simulated
from mockube.controller_manager.kubelet.resizing import NODES_CONFIG_MAP, desired_nodes, node_number
from mockube.failure import TimedOut

FIELD_MANAGER: Final = "mockube-nodes"
"""The field manager of the ConfigMap. Each request sets all fields."""
REQUESTED_AT: Final = "mockube.dev/asked-at"
"""An annotation with the time of the request, so that a repeated request is a change."""
STREAM_SECONDS: Final = 60.0


async def request_nodes(client: Client, nodes: int, extra_data: Mapping[str, str], clock: Clock) -> None:
    """Request a number of nodes; `extra_data` is more data of the ConfigMap: zones, labels."""
    metadata = {
        "name": NODES_CONFIG_MAP.name,
        "namespace": NODES_CONFIG_MAP.namespace,
        "annotations": {REQUESTED_AT: format_time(clock.now())},
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"nodes": str(nodes), **extra_data},
    }
    await client.patch(
        CONFIG_MAPS, NODES_CONFIG_MAP, body, kind="apply", field_manager=FIELD_MANAGER, force=True
    )


async def desired_node_count(client: Client, flag: int) -> int:
    """Return the desired number of nodes; `flag` is the value of the manager's --simulate-nodes."""
    try:
        config_map = await client.get(CONFIG_MAPS, NODES_CONFIG_MAP)
    except NotFound:
        config_map = None
    return desired_nodes(config_map, Simulation(simulate_nodes=flag)).nodes


async def count_nodes(client: Client) -> int:
    return len(_ready_by_name((await client.list(NODES)).items))


async def wait_for_nodes(client: Client, nodes: int, *, clock: Clock, seconds: float) -> None:
    """Wait until there are exactly `nodes` simulated nodes and all of them are ready; raise TimedOut otherwise."""
    ready_by_name: dict[str, bool] = {}
    try:
        async with timeout(clock, seconds), aclosing(_watch_readiness(client)) as changes:
            async for ready_by_name in changes:
                if len(ready_by_name) == nodes and all(ready_by_name.values()):
                    return
    except TimeoutError as error:
        summary = f"{sum(ready_by_name.values())} of {len(ready_by_name)} nodes are ready"
        raise TimedOut(
            f"{summary} after {seconds:g} s, but {nodes} were requested: "
            "is a controller manager with --simulate-nodes running?"
        ) from error


async def _watch_readiness(client: Client) -> AsyncGenerator[dict[str, bool], None]:
    """Yield whether each simulated node is ready, by name: at once, and after every change."""
    while True:
        node_list = await client.list(NODES)
        ready_by_name = _ready_by_name(node_list.items)
        yield ready_by_name
        query = {"resourceVersion": node_list.resource_version}
        try:
            async with client.watch(NODES, query, timeout_seconds=STREAM_SECONDS) as stream:
                async for batch in split_lines(stream.chunks()):
                    for line in batch:
                        event_type, node, _ = parse_watch_event(line)
                        ready_by_name.pop(meta.name(node), None)
                        ready_by_name |= {} if event_type == "DELETED" else _ready_by_name([node])
                    yield ready_by_name
        except (Expired, Gone):
            continue


def _ready_by_name(nodes: list[Parsed]) -> dict[str, bool]:
    return {
        meta.name(node): conditions.is_true(node, "Ready")
        for node in nodes
        if node_number(meta.name(node)) is not None and is_simulated(node)
    }

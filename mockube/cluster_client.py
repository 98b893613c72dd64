"""Wait until a running control plane is usable: its nodes are ready, and pods can be created."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.client.connect import ClientOptions, connect
from mockube.client.kinds import NODES, SERVICE_ACCOUNTS
from mockube.client.kubeconfig import read
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.command_client import AGENT
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.suggestions import enumerate_names
from mockube.component_base.supervision import timeout
from mockube.kubelet.node_pools.pool import NodePools
from mockube.objects.watching import watch_objects
from mockube.resizing import desired_pools, request_nodes, wait_for_nodes

DEFAULT_TIMEOUT: Final = 86400.0
_RETRY_SECONDS: Final = 0.1
"""The time after which a request without a response is repeated."""
_DEFAULT_ACCOUNT: Final = Key("default", "default")


async def wait_usable(
    kubeconfig: Path,
    nodes: NodePools,
    *,
    has_only_these: bool = False,
    clock: Clock,
    report: Callable[[str], None],
    seconds: float = DEFAULT_TIMEOUT,
) -> int:
    """Wait until a new control plane is usable, and return its number of nodes.

    Every node is ready, and the default ServiceAccount exists. The store may request other nodes than the flag;
    `has_only_these`: it requests the same, so that nodes of earlier runs are changed or deleted. Requests are repeated
    until the server responds; the caller checks whether the server has exited.
    """
    while True:
        try:
            options = ClientOptions(access=read(kubeconfig), clock=clock, agent=AGENT)
            async with connect(options) as client:
                report("API server ready")
                if has_only_these:
                    await wait_for_nodes(client, nodes, clock=clock, seconds=seconds)
                desired = (await desired_pools(client, nodes)).count
                await wait_for_pods(client, desired, seconds=seconds)
                report("1 node ready" if desired == 1 else f"{desired} nodes ready")
                return desired
        except NoResponse:
            await clock.sleep(_RETRY_SECONDS)


async def replace_nodes(kubeconfig: Path, nodes: NodePools, *, clock: Clock) -> None:
    """Request nodes instead of those that the store requests."""
    async with connect(ClientOptions(access=read(kubeconfig), clock=clock, agent=AGENT)) as client:
        await request_nodes(client, nodes, clock)


async def wait_for_pods(client: Client, nodes: int, *, seconds: float) -> None:
    """Wait until pods can be created and scheduled: `nodes` nodes are ready, and the default ServiceAccount exists.

    TimeoutError names what is missing after some seconds.
    """
    readiness: dict[str, bool] = {}
    try:
        async with timeout(RealClock(), seconds):
            await _wait_for_nodes(client, nodes, readiness, seconds)
            accounts = watch_objects(
                client, SERVICE_ACCOUNTS, _DEFAULT_ACCOUNT, clock=RealClock(), seconds=seconds
            )
            async with aclosing(accounts) as events:
                async for event_type, _ in events:
                    if event_type != "DELETED":
                        return
    except TimeoutError:
        problem = _missing(readiness, nodes)
        raise TimeoutError(f"the cluster was not ready within {seconds:g} s: {problem}") from None


async def _wait_for_nodes(client: Client, nodes: int, readiness: dict[str, bool], seconds: float) -> None:
    """Wait until some nodes are ready, and note whether each is."""
    async with aclosing(watch_objects(client, NODES, None, clock=RealClock(), seconds=seconds)) as events:
        while sum(readiness.values()) < nodes:
            _, node = await anext(events)
            readiness[meta.name(node)] = readiness.get(meta.name(node), False) or conditions.is_true(
                node, "Ready"
            )


def _missing(readiness: Mapping[str, bool], nodes: int) -> str:
    """Return what a cluster does not have yet."""
    ready = sum(readiness.values())
    if ready >= nodes:
        return (
            "the ServiceAccount default in namespace default does not exist, without which no pod can be created;"
            " the serviceaccount-controller creates it"
        )
    unready = [name for name, is_ready in readiness.items() if not is_ready]
    details = [f"{ready} of {nodes} nodes are ready"]
    if unready:
        details.append(f"not ready: {enumerate_names(unready)}")
    if nodes > len(readiness):
        details.append(f"{nodes - len(readiness)} do not exist")
    return "; ".join(details)

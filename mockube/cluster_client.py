"""Wait until a running control plane is usable: its nodes are ready, and pods can be created and started."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta, wellknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.connect import ClientOptions, connect
from mockube.client.kinds import CONFIG_MAPS, NODES, SERVICE_ACCOUNTS
from mockube.client.kubeconfig import read
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.command_client import AGENT
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.suggestions import enumerate_names
from mockube.component_base.supervision import timeout
from mockube.controller_manager.config.selection import ALL_CONTROLLERS, is_controller_enabled
from mockube.kubelet.node_pools.pool import NodePools
from mockube.objects.watching import watch_objects
from mockube.resizing import desired_pools, request_nodes, wait_for_nodes

DEFAULT_TIMEOUT: Final = 86400.0
_RETRY_SECONDS: Final = 0.1
"""The time after which a request without a response is repeated."""
_NAMESPACES: Final = (
    wellknown.NAMESPACE_DEFAULT,
    wellknown.NAMESPACE_SYSTEM,
    wellknown.NAMESPACE_PUBLIC,
)
"""The namespaces that cannot be deleted."""


class NamespaceObject(Struct, frozen=True, kw_only=True):
    """An object that a controller creates in each namespace, and that pods need."""

    resource: Resource[ReadOnlyTree]
    name: str
    controller: str
    purpose: str


_NAMESPACE_OBJECTS: Final = (
    NamespaceObject(
        resource=SERVICE_ACCOUNTS,
        name="default",
        controller="serviceaccount-controller",
        purpose="without which no pod can be created",
    ),
    NamespaceObject(
        resource=CONFIG_MAPS,
        name="kube-root-ca.crt",
        controller="root-ca-certificate-publisher-controller",
        purpose="which every pod with a token mounts",
    ),
)


async def wait_usable(  # noqa: PLR0913 - each says what to wait for, or how
    kubeconfig: Path,
    nodes: NodePools,
    *,
    has_only_these: bool = False,
    clock: Clock,
    report: Callable[[str], None],
    controllers: Sequence[str] = (ALL_CONTROLLERS,),
    control_planes: int = 0,
    seconds: float = DEFAULT_TIMEOUT,
) -> int:
    """Wait until a new control plane is usable, and return its number of nodes without `control_planes` more for the control plane.

    Every node is ready, and the objects exist that `controllers` create in each namespace. The store may request other
    nodes than the flag; `has_only_these`: it requests the same, so that nodes of earlier runs are changed or deleted.
    Requests are repeated until the server responds; the caller checks whether the server has exited.
    """
    while True:
        try:
            options = ClientOptions(access=read(kubeconfig), clock=clock, agent=AGENT)
            async with connect(options) as client:
                report("API server ready")
                if has_only_these:
                    await wait_for_nodes(client, nodes, clock=clock, seconds=seconds)
                desired = (await desired_pools(client, nodes)).count
                await wait_for_pods(
                    client, desired + control_planes, controllers=controllers, seconds=seconds
                )
                report("1 node ready" if desired == 1 else f"{desired} nodes ready")
                return desired
        except NoResponse:
            await clock.sleep(_RETRY_SECONDS)


async def replace_nodes(kubeconfig: Path, nodes: NodePools, *, clock: Clock) -> None:
    """Request nodes instead of those that the store requests."""
    async with connect(ClientOptions(access=read(kubeconfig), clock=clock, agent=AGENT)) as client:
        await request_nodes(client, nodes, clock)


async def wait_for_pods(
    client: Client, nodes: int, *, controllers: Sequence[str] = (ALL_CONTROLLERS,), seconds: float
) -> None:
    """Wait until pods can be created and scheduled, with the `--controllers` of the manager: `nodes` nodes are ready, and
    the system namespaces have what pods need.

    TimeoutError names what is missing after some seconds.
    """
    readiness: dict[str, bool] = {}
    missing: list[str] = []
    try:
        async with timeout(RealClock(), seconds):
            await _wait_for_nodes(client, nodes, readiness, seconds)
            for each in _NAMESPACE_OBJECTS:
                if is_controller_enabled(each.controller, controllers, by_default=True):
                    await _wait_for_namespace_object(client, each, missing, seconds)
    except TimeoutError:
        problem = missing[0] if missing else _missing_nodes(readiness, nodes)
        raise TimeoutError(f"the cluster was not ready within {seconds:g} s: {problem}") from None


async def _wait_for_namespace_object(
    client: Client, namespace_object: NamespaceObject, missing: list[str], seconds: float
) -> None:
    """Wait until each system namespace has the object; meanwhile `missing` says which one does not."""
    found: set[str] = set()
    changes = watch_objects(
        client, namespace_object.resource, Key("", namespace_object.name), clock=RealClock(), seconds=seconds
    )
    async with aclosing(changes) as events:
        while namespace := next((each for each in _NAMESPACES if each not in found), ""):
            object_name = f"{namespace_object.resource.kind} {namespace_object.name} in namespace {namespace}"
            missing[:] = [
                f"the {object_name} does not exist, {namespace_object.purpose}; the {namespace_object.controller} creates it"
            ]
            event_type, tree = await anext(events)
            found = (
                found - {meta.namespace(tree)} if event_type == "DELETED" else found | {meta.namespace(tree)}
            )
    missing.clear()


async def _wait_for_nodes(client: Client, nodes: int, readiness: dict[str, bool], seconds: float) -> None:
    """Wait until some nodes are ready, and note whether each is."""
    async with aclosing(watch_objects(client, NODES, None, clock=RealClock(), seconds=seconds)) as events:
        while sum(readiness.values()) < nodes:
            _, node = await anext(events)
            readiness[meta.name(node)] = readiness.get(meta.name(node), False) or conditions.is_true(
                node, "Ready"
            )


def _missing_nodes(readiness: Mapping[str, bool], nodes: int) -> str:
    """Return which nodes a cluster does not have yet."""
    ready = sum(readiness.values())
    unready = [name for name, is_ready in readiness.items() if not is_ready]
    details = [f"{ready} of {nodes} nodes are ready"]
    if unready:
        details.append(f"not ready: {enumerate_names(unready)}")
    if nodes > len(readiness):
        details.append(f"{nodes - len(readiness)} do not exist")
    return "; ".join(details)

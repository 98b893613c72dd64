"""What one refresh reads of a cluster, by its API alone. What a user may not read is named, and the rest is shown."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NODES, PODS
from mockube.client.resources import row
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.control_objects import CONTROLLERS, TABLE

T = TypeVar("T")
NODE_METRICS: Final = row("metrics.k8s.io/v1beta1", "nodes", "NodeMetrics", namespaced=False)
_NOT_SERVED: Final = "the server does not serve it"


class Unreadable(Struct, frozen=True):
    """Why something is not shown."""

    reason: str


Maybe: TypeAlias = T | Unreadable


class Node(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    cpu: float
    """The cores of the node that pods may request."""
    memory: float
    """The bytes of memory that pods may request."""


class Usage(Struct, frozen=True):
    """The used cores, and the used bytes of memory."""

    cpu: float
    memory: float


class Pods(Struct, frozen=True, kw_only=True):
    by_status: Mapping[str, int]
    """The number of pods, by the status that kubectl prints."""
    by_node: Mapping[str, int]


class Reading(Struct, frozen=True, kw_only=True):
    """Everything that one refresh shows."""

    time: float
    """The seconds of a monotonic clock at which it was read, for rates."""
    nodes: Maybe[Sequence[Node]]
    usage: Maybe[Mapping[str, Usage]]
    pods: Maybe[Pods]
    controllers: Maybe[Sequence[ReadOnlyTree]]


async def read(client: Client, clock: Clock) -> Reading:
    """Read what is shown, but the requests; raise NoResponse if the server is away."""
    nodes, usage, pods, controllers = await asyncio.gather(
        _readable(_nodes(client)),
        _readable(_usage(client)),
        _readable(_pods(client)),
        _readable(_controllers(client)),
    )
    return Reading(time=clock.monotonic(), nodes=nodes, usage=usage, pods=pods, controllers=controllers)


async def _readable(reading: Awaitable[T]) -> Maybe[T]:
    try:
        return await reading
    except ApiError as error:
        return unreadable(error)


def unreadable(error: ApiError) -> Unreadable:
    return Unreadable(_NOT_SERVED if isinstance(error, NotFound) else error.message)


async def _nodes(client: Client) -> Sequence[Node]:
    return [node_of(tree) for tree in (await client.list(NODES, resource_version="0")).items]


def node_of(tree: ReadOnlyTree) -> Node:
    state = "Ready" if conditions.is_true(tree, "Ready") else "NotReady"
    if (tree.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    allocatable = (tree.get("status") or {}).get("allocatable") or {}
    return Node(
        name=meta.name(tree),
        state=state,
        cpu=quantity.number_or(allocatable.get("cpu"), 0.0),
        memory=quantity.number_or(allocatable.get("memory"), 0.0),
    )


async def _usage(client: Client) -> Mapping[str, Usage]:
    listed = (await client.list(NODE_METRICS)).items
    return {meta.name(tree): usage_of(tree) for tree in listed}


def usage_of(tree: ReadOnlyTree) -> Usage:
    used = tree.get("usage") or {}
    return Usage(quantity.number_or(used.get("cpu"), 0.0), quantity.number_or(used.get("memory"), 0.0))


async def _pods(client: Client) -> Pods:
    """Read the pods as rows of a table, which are a tenth of their objects."""
    query = urlencode({"includeObject": "None", "resourceVersion": "0"})
    return pods_of(await client.raw("GET", f"{PODS.path()}?{query}", accept=TABLE))


def pods_of(table: ReadOnlyTree) -> Pods:
    names = [column["name"] for column in table.get("columnDefinitions") or ()]
    status, node = names.index("Status"), names.index("Node")
    rows = [each["cells"] for each in table.get("rows") or ()]
    return Pods(
        by_status=Counter(str(cells[status]) for cells in rows),
        by_node=Counter(str(cells[node]) for cells in rows),
    )


async def _controllers(client: Client) -> Sequence[ReadOnlyTree]:
    return (await client.list(CONTROLLERS)).items

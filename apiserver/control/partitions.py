"""Nodes that are cut off: a Fault with `partition` disconnects a simulated node while it exists.

A node of mockube is disconnected by an annotation, so that its manager, in this process or in another one, follows it by its watch.
The annotation is in the store, and the Fault is not: its value says that a Fault has set it, so that a server that starts with the
objects of another one, or of a past moment, connects the nodes of Faults that it does not have.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import NODES
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOP_HEARTBEATS, STOPPED_BY_FAULT, STOPS_HEARTBEATS
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.recent_changes import Change
from mockube.apiserver.storage.stored_object import StoredObject

PARTITION: Final = "partition"
"""The field of the spec."""
RETRY_SECONDS: Final = 1.0
_SPEC: Final = ROOT.child("spec")
_ANNOTATION: Final = STOP_HEARTBEATS.encode()


def check_partition(spec: ReadOnlyTree, cluster: Registry) -> Iterator[FieldError]:
    """Yield the errors of a fault that cuts a node off."""
    match = spec.get("match") or {}
    node = match.get("node")
    path = _SPEC.child("match").child("node")
    if not node:
        yield errors.required(path, "a partition needs the name of a node")
    elif cluster.find_cached(NODES, "", node) is None:
        yield errors.invalid(path, node, "there is no such node")
    for name in sorted({*match} - {"node"}):
        yield errors.forbidden(_SPEC.child("match").child(name), "a partition concerns a whole node")
    for name in sorted({*spec} - {"match", PARTITION}):
        yield errors.forbidden(_SPEC.child(name), "it cannot be given with a partition")


class Partitions:
    """Disconnects the nodes of faults, and connects them again when the last fault of a node is gone.

    A node that its user has disconnected stays so; when the user connects it, a fault disconnects it again.
    """

    prefix: bytes

    def __init__(self, cluster: Registry) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}
        """By the name of a fault, its node."""
        self._cut_off: frozenset[str] = frozenset()
        """The nodes of faults."""
        self._pending: set[str] = set()
        """The nodes whose annotations have to be compared with the faults."""
        self._refused: set[str] = set()
        """The nodes that could not be written, and are tried again."""
        self._changed = asyncio.Event()

    @property
    def names(self) -> Iterable[str]:
        """The names of the faults."""
        return [*self._nodes]

    def set(self, fault: str, node: str) -> None:
        """Note the node that a fault cuts off; "" if it cuts off none any more."""
        before = self._nodes.get(fault, "")
        if node == before:
            return
        self._nodes = {name: each for name, each in self._nodes.items() if name != fault}
        if node:
            self._nodes[fault] = node
        self._cut_off = frozenset(self._nodes.values())
        self._compare_later(filter(None, (before, node)))

    # --- nodes

    def begin(self) -> None:
        """Begin to follow the nodes."""
        cache = self._cluster.resource_cache(NODES)
        self.prefix = cache.prefix
        cache.watchers.add(self)

    def handle_change(self, change: Change) -> None:
        if self._cut_off and (node := self._name(change.after)) in self._cut_off:
            self._compare_later([node])

    def handle_missed_change(self) -> None:
        self._compare_later(self._cut_off)

    async def compare_all(self) -> None:
        """Compare all nodes with the faults: the objects are those of another server, or of another moment."""
        await self._cluster.watch_cache.fresh()
        nodes = self._cluster.list_cached(NODES)
        annotated = {self._name(each) for each in nodes if _ANNOTATION in each.value}
        self._compare_later(self._cut_off | annotated)

    def _name(self, node: StoredObject) -> str:
        return node.key.removeprefix(self.prefix).decode()

    def _compare_later(self, nodes: Iterable[str]) -> None:
        self._pending.update(nodes)
        self._changed.set()

    # --- annotations

    async def run(self) -> None:
        """Disconnect and connect nodes, until cancelled."""
        await self.compare_all()
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._reconcile()

    async def _reconcile(self) -> None:
        nodes, self._pending = self._pending, set()
        try:
            await self._cluster.watch_cache.fresh()  # it has the annotations that were written here
            for node in sorted(nodes):
                try:
                    await self._compare(node)
                except ApiError:  # such as of a webhook that refuses the annotation
                    self._retry_later(node)
        except BaseException:
            self._compare_later(nodes)  # the task that starts again has the same to do
            raise

    def _retry_later(self, node: str) -> None:
        if not self._refused:
            self._cluster.clock.coalescing.call_later(RETRY_SECONDS, self._retry)
        self._refused.add(node)

    def _retry(self) -> None:
        refused, self._refused = self._refused, set()
        self._compare_later(refused)

    async def _compare(self, node: str) -> None:
        """Annotate a node if the faults require it, or end what a fault has done that is gone."""
        stored = self._cluster.find_cached(NODES, "", node)
        if stored is None:
            return
        value = meta.annotations(stored.shared_tree()).get(STOP_HEARTBEATS)
        if node in self._cut_off and value not in STOPS_HEARTBEATS:
            await self._annotate(node, STOPPED_BY_FAULT)
        elif node not in self._cut_off and value == STOPPED_BY_FAULT:
            await self._annotate(node, None)

    async def _annotate(self, node: str, value: str | None) -> None:
        row, annotations = self._cluster.rows[NODES], {STOP_HEARTBEATS: value}
        await patch_as_server(self._cluster, row, "", node, {"metadata": {"annotations": annotations}})

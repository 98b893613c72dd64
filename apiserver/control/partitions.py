"""Nodes that are cut off: a Fault with `partition` disconnects a simulated node while it exists.

A node of mockube is disconnected by an annotation, so that its manager, in this process or in another one, follows it by its watch.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.registry import Registry

PARTITION: Final = "partition"
"""The field of the spec."""
DISCONNECTED: Final = "mockube.dev/stop-heartbeats"
"""The annotation of a node that sends nothing."""
RETRY_SECONDS: Final = 1.0
_NODES: Final = GroupResource("", "nodes")
_SPEC: Final = ROOT.child("spec")


def check_partition(spec: ReadOnlyTree, cluster: Registry) -> Iterator[FieldError]:
    """Yield the errors of a fault that cuts a node off."""
    match = spec.get("match") or {}
    node = match.get("node")
    path = _SPEC.child("match").child("node")
    if not node:
        yield errors.required(path, "a partition needs the name of a node")
    elif cluster.find_cached(_NODES, "", node) is None:
        yield errors.invalid(path, node, "there is no such node")
    for name in sorted({*match} - {"node"}):
        yield errors.forbidden(_SPEC.child("match").child(name), "a partition concerns a whole node")
    for name in sorted({*spec} - {"match", PARTITION}):
        yield errors.forbidden(_SPEC.child(name), "it cannot be given with a partition")


class Partitions:
    """Disconnects the nodes of faults, and connects them again when the last fault of a node is gone."""

    def __init__(self, cluster: Registry) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}
        """By the name of a fault, its node."""
        self._disconnected: set[str] = set()
        """The nodes that were disconnected by a fault."""
        self._changed = asyncio.Event()

    @property
    def names(self) -> Iterable[str]:
        """The names of the faults."""
        return [*self._nodes]

    def set(self, fault: str, node: str) -> None:
        """Note the node that a fault cuts off; "" if it cuts off none any more."""
        if node != self._nodes.get(fault, ""):
            self._nodes = {name: each for name, each in self._nodes.items() if name != fault}
            if node:
                self._nodes[fault] = node
            self._changed.set()

    async def run(self) -> None:
        """Disconnect and connect nodes, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._reconcile()
            except ApiError:  # such as of a webhook that refuses the annotation
                self._cluster.clock.coalescing.call_later(RETRY_SECONDS, self._changed.set)
            except BaseException:
                self._changed.set()  # the task that starts again has the same to do
                raise

    async def _reconcile(self) -> None:
        nodes = {*self._nodes.values()}
        for node in sorted(nodes - self._disconnected):
            if not self._is_disconnected(node):  # by somebody else, who connects it again
                await self._annotate(node, "true")
                self._disconnected.add(node)
        for node in sorted(self._disconnected - nodes):
            if self._cluster.find_cached(_NODES, "", node) is not None:
                await self._annotate(node, None)
            self._disconnected.discard(node)

    def _is_disconnected(self, node: str) -> bool:
        stored = self._cluster.find_cached(_NODES, "", node)
        return stored is None or meta.annotations(stored.tree()).get(DISCONNECTED) == "true"

    async def _annotate(self, node: str, value: str | None) -> None:
        row, annotations = self._cluster.rows[_NODES], {DISCONNECTED: value}
        await patch_as_server(self._cluster, row, "", node, {"metadata": {"annotations": annotations}})

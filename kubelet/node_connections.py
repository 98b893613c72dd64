"""Connections of pods to the kubelets of their nodes: all kubelets share one listener, which learns the node from the client's port."""

import socket
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.container_runtime.process_port import LOOPBACK, ProcessPort

from .node_objects import is_disconnected, runs_kubelet

MAX_EXPECTED: Final = 4_096
"""Sockets that are about to connect to a kubelet."""


class _Expected:
    """A connection to the kubelet of a node."""

    def __init__(self, node: str) -> None:
        self.node = node


class NodeConnections:
    """The `Kubelets` of this process."""

    def __init__(self, nodes: Lister[ReadOnlyTree]) -> None:
        self._nodes = nodes
        self._host = ""
        self._port: Callable[[], int]
        self._expected: OrderedDict[tuple[str, int], _Expected] = OrderedDict()
        """By the address of each client that is about to connect."""

    def listen_at(self, address: str, port: Callable[[], int]) -> None:
        """Connect to an address; the port is asked for at each connection, since it is another one in a forked process."""
        self._host, self._port = LOOPBACK if ip_address(address).is_unspecified else address, port

    def port_of(self, node: str) -> ProcessPort | None:
        tree = self._nodes.get("", node)
        if not self._host or tree is None or not runs_kubelet(tree):
            return None
        return ProcessPort(self._host, self._port(), partial(self._open_socket, node))

    def is_disconnected(self, node: str) -> bool:
        tree = self._nodes.get("", node)
        return tree is not None and is_disconnected(tree)

    async def _open_socket(self, node: str, host: str, _source: str, _kind: int) -> socket.socket:
        """Open a socket with an address by which the listener knows the node."""
        opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        opened.setblocking(False)  # noqa: FBT003 - of the library
        opened.bind((host, 0))
        address = opened.getsockname()[:2]
        self._expected[address] = expected = _Expected(node)
        weakref.finalize(opened, self._forget, address, expected).atexit = False
        if len(self._expected) > MAX_EXPECTED:
            self._expected.popitem(last=False)
        return opened

    def _forget(self, address: tuple[str, int], expected: "_Expected") -> None:
        """Expect no connection of a socket that is gone: another client gets its port, which may be the API server."""
        if self._expected.get(address) is expected:
            del self._expected[address]

    def node_of(self, client: Any) -> str:
        """Return the node to which a client at an address has connected; "" if its requests say which one they are for."""
        expected = self._expected.pop(tuple(client[:2]), None) if client else None
        return expected.node if expected else ""

"""The network namespaces of a cluster's pods, which a child process holds (`holder.py`): requests to it."""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from subprocess import DEVNULL, Popen
from typing import Any, Final

import orjson
from msgspec import Struct

from .holder import command
from .netlink import NETLINK_NETFILTER

_PACKET: Final = 1 << 16
_MAX_FILES: Final = 4
_MAX_UNANSWERED: Final = 64
"""Requests that wait for an answer: the kernel keeps only some hundred of them, and refuses more."""


class NetworkProblem(OSError):
    """The machine does not give a pod its network; the message says what is missing."""


class PodNamespace(Struct, frozen=True, kw_only=True):
    """The network namespace of a pod, or that of a node, which the pods in its network share."""

    link: int
    """The index of its link in the cluster's namespace."""
    files: tuple[int, ...]
    """The file descriptors of the namespaces that a process enters, in order; the last one is its own."""

    def close(self) -> None:
        os.close(self.files[-1])


class Namespaces:
    def __init__(self, on_lost: Callable[[int], None], on_end: Callable[[], None]) -> None:
        """`on_lost` is called with the link of a namespace whose network is gone, `on_end` if all are."""
        self._on_lost = on_lost
        self._on_end = on_end
        self._process: Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._answers: deque[asyncio.Future[tuple[Any, list[int]]]] = deque()
        self._free = asyncio.Semaphore(_MAX_UNANSWERED)
        self._user_namespace: int | None = None
        self._count = 0
        self.versions: Sequence[int] = ()
        """The versions of IP that pods can have."""

    async def start(self) -> None:
        """Start the child process; raise `NetworkProblem` if the machine does not permit it."""
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = Popen(command(), stdin=other.fileno(), stdout=DEVNULL, cwd="/")  # noqa: S603, ASYNC220 - it takes 1 ms
        own.setblocking(False)  # noqa: FBT003 - of the library
        self._connection = own
        asyncio.get_running_loop().add_reader(own, self._read)
        await self._free.acquire()
        answer, files = await self._expect()
        self.versions = answer["versions"]
        self._user_namespace = files[0] if files else None

    async def add(
        self,
        addresses: Sequence[str],
        settings: Mapping[str, str],
        balancers: str = "",
        *,
        is_node: bool = False,
    ) -> PodNamespace:
        """Make a namespace; in it the addresses of `balancers`, a range of loopback addresses, are those of load balancers.

        What a node sends to its own addresses gets a verdict, too, since its ports lead to pods.
        """
        self._count += 1
        answer, files = await self._request(
            do="add",
            name=f"pod{self._count}",
            addresses=addresses,
            settings=settings,
            balancers=balancers,
            is_node=is_node,
        )
        owner = () if self._user_namespace is None else (self._user_namespace,)
        return PodNamespace(link=answer["link"], files=(*owner, *files))

    async def drop(self, namespace: PodNamespace) -> None:
        namespace.close()
        with suppress(NetworkProblem):
            await self._request(do="drop", link=namespace.link)

    async def open_socket(
        self, family: int, kind: int = socket.SOCK_STREAM, *, link: int = 0, protocol: int = 0
    ) -> socket.socket:
        """Open a socket in the namespace of a link, or in that of the cluster."""
        _, files = await self._request(
            do="open_socket", link=link, family=int(family), kind=int(kind), protocol=protocol
        )
        opened = socket.socket(fileno=files[0])
        opened.setblocking(False)  # noqa: FBT003 - of the library
        return opened

    async def open_netfilter(self) -> socket.socket:
        opened = await self.open_socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol=NETLINK_NETFILTER)
        opened.bind((0, 0))
        return opened

    def close(self) -> None:
        """End the child process, and so all namespaces that no process is in."""
        if self._connection is None:
            return
        asyncio.get_running_loop().remove_reader(self._connection)
        self._connection.close()
        self._connection = None
        if self._user_namespace is not None:
            os.close(self._user_namespace)
            self._user_namespace = None
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for future in self._answers:
            self._free.release()
            if not future.done():
                future.set_exception(NetworkProblem("the network of the pods has ended"))
        self._answers.clear()

    async def _request(self, **request: Any) -> tuple[Any, list[int]]:
        await self._free.acquire()
        try:
            self._send(request)
        except NetworkProblem:
            self._free.release()
            raise
        return await self._expect()

    def _send(self, request: Mapping[str, Any]) -> None:
        if self._connection is None:
            raise NetworkProblem("the network of the pods has ended")
        try:
            self._connection.send(orjson.dumps(request))
        except OSError as error:
            raise NetworkProblem(f"the network of the pods: {os.strerror(error.errno or 0)}") from error

    async def _expect(self) -> tuple[Any, list[int]]:
        future = asyncio.get_running_loop().create_future()
        self._answers.append(future)
        answer, files = await future
        if "error" in answer:
            raise NetworkProblem(answer["error"])
        return answer, files

    def _read(self) -> None:
        assert self._connection is not None
        try:
            text, files, _, _ = socket.recv_fds(self._connection, _PACKET, _MAX_FILES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ECONNRESET:
                raise
            text, files = b"", []
        if not text:
            self.close()
            self._on_end()
            return
        answer = orjson.loads(text)
        if "lost" in answer:
            self._on_lost(answer["lost"])
            return
        future = self._answers.popleft()
        self._free.release()
        if future.done():  # nobody waits any more
            for file in files:
                os.close(file)
        else:
            future.set_result((answer, files))

"""Connections to the servers of the user's own kubeconfigs, which are refused while another cluster is the default.

A client that was created before the block, or by the path of a kubeconfig, would otherwise change the user's own cluster.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

from .target import Address, address_of

IN_POD: Final = ("kubernetes.default.svc", 443)
"""The address that kopf uses in a pod."""
_LOOPBACK: Final[Mapping[str, tuple[str, ...]]] = {"localhost": ("127.0.0.1", "::1")}


class OwnServer(Struct, frozen=True, kw_only=True):
    """A server of the user, and where its address comes from."""

    url: str
    source: str


def own_servers(environment: Mapping[str, str], loaded: Iterable[str]) -> Iterator[OwnServer]:
    """Yield the servers of the user's kubeconfigs, of the pod that this process is in, and of loaded configurations."""
    paths = (environment.get("KUBECONFIG", "").split(os.pathsep), ("~/.kube/config",))
    for path in (Path(text).expanduser() for texts in paths for text in texts if text):
        for url in _servers_of_file(path):
            yield OwnServer(url=url, source=f"the kubeconfig {path}")
    host, port = (environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if host and port:
        in_brackets = f"[{host}]" if ":" in host else host
        yield OwnServer(url=f"https://{in_brackets}:{port}", source="the pod of this process")
        yield OwnServer(url=f"https://{IN_POD[0]}", source="the pod of this process")
    for url in loaded:
        yield OwnServer(url=url, source="a configuration that was loaded before")


def _servers_of_file(path: Path) -> Iterator[str]:
    try:
        clusters = load(path.read_bytes()).tree["clusters"]
        urls = [entry["cluster"]["server"] for entry in clusters]
    except (OSError, YamlError, TypeError, LookupError):  # no client can use it
        return
    yield from (url for url in urls if isinstance(url, str))


class RefusedServers:
    """The patch of `socket` that refuses connections to servers, except to those that are allowed."""

    def __init__(self, servers: Iterable[OwnServer], is_allowed: Callable[[Address], bool]) -> None:
        self._servers: dict[Address, OwnServer] = {}
        for server in servers:
            if address := address_of(server.url):
                for host in (_normalized(address[0]), *_LOOPBACK.get(address[0], ())):
                    self._servers.setdefault((host, address[1]), server)
        self._ports = {port for _, port in self._servers}
        self._is_allowed = is_allowed
        self._replaced: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        if not self._servers:
            return
        connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

        def checked_connect(sock: socket.socket, address: Any, /) -> None:
            self._check(address)
            return connect(sock, address)

        def checked_connect_ex(sock: socket.socket, address: Any, /) -> int:
            self._check(address)
            return connect_ex(sock, address)

        def checked_getaddrinfo(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
            self._check((host, port))
            return getaddrinfo(host, port, *arguments, **options)

        self._replace(socket.socket, "connect", checked_connect)
        self._replace(socket.socket, "connect_ex", checked_connect_ex)
        self._replace(socket, "getaddrinfo", checked_getaddrinfo)
        self._end_connections()

    def remove(self) -> None:
        while self._replaced:
            owner, name, value = self._replaced.pop()
            if value is None:
                delattr(owner, name)  # it is inherited
            else:
                setattr(owner, name, value)

    def _end_connections(self) -> None:
        """End the connections that clients keep open, so that they connect again, which is refused."""
        with suppress(OSError):  # some systems have no such folder
            for name in os.listdir("/dev/fd"):  # noqa: PTH208 - the names are numbers
                with suppress(OSError), _duplicate(int(name)) as connection:
                    if self._refused_server(connection.getpeername()):
                        connection.shutdown(socket.SHUT_RDWR)

    def _replace(self, owner: Any, name: str, value: object) -> None:
        self._replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def _check(self, address: Any) -> None:
        """Raise ConnectionRefusedError if the address is one of the user's servers."""
        server = self._refused_server(address)
        if server is None:
            return
        raise ConnectionRefusedError(
            errno.ECONNREFUSED,
            f"{server.url} of {server.source} is not used while a cluster of mockube is the default of this process:"
            " create the client inside of the block, without naming a kubeconfig",
        )

    def _refused_server(self, address: Any) -> OwnServer | None:
        match address:
            case (str(host), int(port), *_) if port in self._ports:
                key = _normalized(host), port
                return None if self._is_allowed(key) else self._servers.get(key)
            case _:
                return None


def _duplicate(descriptor: int) -> socket.socket:
    """Return another socket of the same connection; raise OSError if a file descriptor is no socket."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOTSOCK, "not a socket")
    return socket.socket(fileno=os.dup(descriptor))


def _normalized(host: str) -> str:
    host = host.lower().rstrip(".")
    try:
        return str(ip_address(host))
    except ValueError:
        return host

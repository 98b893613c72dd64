"""The port of a cluster, and the process that uses a port.

A cluster uses the same port in each run, so that its kubeconfig stays valid: the default cluster upstream's port, others
the port that was free at their first start.
"""

import errno
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mockube import launch
from mockube.failure import Failure

from .kubeconfigs import read_url
from .named_cluster import ClusterFolder, ClusterState, cluster_folders, inspect_cluster

UPSTREAM_PORT: Final = 6443
PORT_VARIABLE: Final = "MOCKUBE_APISERVER_SECURE_PORT"
"""The environment variable that sets the API server's --secure-port."""
LOOPBACK: Final = "127.0.0.1"
ANY_PORT: Final = 0
_LISTEN_STATE: Final = "0A"
_SOCKET_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def default_port(folder: ClusterFolder, environment: Mapping[str, str]) -> int:
    """Return the port to listen on if no flag sets it."""
    port = environment.get(PORT_VARIABLE, "")
    if port.isdigit():
        return int(port)
    if folder.name == launch.NAME:
        return UPSTREAM_PORT
    previous_port = port_of(read_url(folder))
    return previous_port if previous_port and is_free(LOOPBACK, previous_port) else ANY_PORT


def port_of(url: str) -> int:
    return urlsplit(url).port or ANY_PORT


def with_port(url: str, port: int) -> str:
    """Return a URL with another port."""
    parts = urlsplit(url)
    host = parts.netloc.removesuffix(f":{parts.port}")
    return parts._replace(netloc=f"{host}:{port}").geturl()


def is_free(address: str, port: int) -> bool:
    return _bind_error(address, port) != errno.EADDRINUSE


def _bind_error(address: str, port: int) -> int:
    """Return the number of the error of a listener; 0 for none."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno or 0
    return 0


def check_address(address: str) -> None:
    if _bind_error(address, ANY_PORT) == errno.EADDRNOTAVAIL:
        raise Failure(
            f"{address} is not an address of this machine: use another --bind-address, such as {LOOPBACK}"
        )


def check_port_free(address: str, port: int, environment: Mapping[str, str]) -> None:
    if _bind_error(address, port) == errno.EACCES:
        raise Failure(f"port {port} is reserved for root: set --secure-port=0 for a free port")
    if port != ANY_PORT and not is_free(address, port):
        raise Failure(
            f"port {port} is in use by {port_user(port, environment)}: stop it, or set --secure-port=0 for a free port"
        )


def port_user(port: int, environment: Mapping[str, str]) -> str:
    for folder in cluster_folders(environment):
        cluster = inspect_cluster(folder)
        if cluster.record and cluster.state is not ClusterState.DEAD and port_of(cluster.record.url) == port:
            return f'the cluster "{folder.name}" (`mockube down --name={folder.name}` stops it)'
    with suppress(OSError):  # another system, or another user's processes
        return next(_processes(port), "another process")
    return "another process"


def _processes(port: int) -> Iterator[str]:
    """Yield the processes that listen on the port, as far as this user can see their sockets."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(descriptor.readlink()) in sockets for descriptor in (process / "fd").iterdir()):
                yield f"{(process / 'comm').read_text().strip()} (process {process.name})"


def _inodes(port: int) -> Iterator[str]:
    for table in _SOCKET_TABLES:
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTEN_STATE and int(local.rpartition(":")[2], 16) == port:
                yield inode

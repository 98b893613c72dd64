"""The port of a cluster: which one it uses, and which process uses it if it is taken.

A cluster is served where it was served before, so that its kubeconfig is good the next time: the default one on
upstream's port, others on the one that was free when they first began.
"""

import errno
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mockube.clusters.kubeconfigs import read_url
from mockube.clusters.named_cluster import ClusterFolder, State, cluster_folders, look
from mockube.failure import Failure
from mockube.processes import defaults

UPSTREAM: Final = 6443
VARIABLE: Final = "MOCKUBE_APISERVER_SECURE_PORT"
"""The option by which the API server gets its port."""
LOOPBACK: Final = "127.0.0.1"
ANY: Final = 0
_LISTENING: Final = "0A"
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def default_port(folder: ClusterFolder, environment: Mapping[str, str]) -> int:
    """Return the port to listen on without a flag."""
    port = environment.get(VARIABLE, "")
    if port.isdigit():
        return int(port)
    if folder.name == defaults.NAME:
        return UPSTREAM
    before = port_of(read_url(folder))
    return before if before and is_free(LOOPBACK, before) else ANY


def port_of(url: str) -> int:
    return urlsplit(url).port or ANY


def is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def check_port_free(address: str, port: int, environment: Mapping[str, str]) -> None:
    if port != ANY and not is_free(address, port):
        raise Failure(
            f"port {port} is in use by {holder(port, environment)}: stop it, or set --secure-port=0 for a free port"
        )


def holder(port: int, environment: Mapping[str, str]) -> str:
    for folder in cluster_folders(environment):
        cluster = look(folder)
        if cluster.record and cluster.state is not State.DEAD and port_of(cluster.record.url) == port:
            return f'the cluster "{folder.name}" (`mockube down --name {folder.name}` stops it)'
    with suppress(OSError):  # another system, or another user's processes
        return next(_processes(port), "another process")
    return "another process"


def _processes(port: int) -> Iterator[str]:
    """Those that listen there, as far as they are shown to us."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(descriptor.readlink()) in sockets for descriptor in (process / "fd").iterdir()):
                yield f"{(process / 'comm').read_text().strip()} (process {process.name})"


def _inodes(port: int) -> Iterator[str]:
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                yield inode

"""The sockets on which the containers of a pod listen, as netstat and ss show them. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.programs.other_processes import first_argv
from mockube.container_runtime.simulated.programs.program import pid_of
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from mockube.container_runtime.simulated.servers.running_servers import RunningServers
from mockube.container_runtime.simulated.shell.network_programs.sockets import Socket

from .port_answers import has_begun, open_port, running_containers

_OLD: Final = "0.0.0.0"  # noqa: S104 - in the output of a simulated program
_BOTH: Final = frozenset(
    {"nginx", "redis-server", "valkey-server", "postgres", "memcached", "mariadbd", "mongos"}
)
"""The servers that open a socket for IPv4 and one for IPv6 by default."""
_ONLY_OLD: Final = frozenset({"mongod", "python", "python3", "socat", "gunicorn", "uvicorn"})
"""The servers that open one for IPv4. Others, as programs in Go, Java and of Node, open one for both, which counts as one of IPv6."""


def listening_sockets(
    images: ImageTable, pod: ReadOnlyTree, servers: RunningServers, now: datetime
) -> Iterator[Socket]:
    """Yield the sockets of a pod by their ports, each with the first process of its container."""
    started = servers.of_pod(pod)
    found = set[tuple[int, str, str]]()
    for container in running_containers(pod):
        listeners = listeners_of(images, pod, container, servers)
        server = started.get(container["name"])
        ports = {
            ("TCP", port) for port in listeners.ports if has_begun(images, pod, container, port, servers, now)
        }
        if server is not None:
            configuration = server.configuration
            ports = {("TCP", port) for port in (configuration.ports if configuration is not None else ())}
        ports |= {(protocol, port) for protocol, each in (listeners.datagrams or {}).items() for port in each}
        for entry in container.get("ports") or ():
            protocol, port = entry.get("protocol") or "TCP", entry["containerPort"]
            if open_port(images, pod, port, protocol, servers, now) is not None and listeners.may_listen(
                port, protocol
            ):
                ports.add((protocol, port))
        found |= {(port, protocol, container["name"]) for protocol, port in ports}
    containers = {container["name"]: container for container in running_containers(pod)}
    for answer in script_of(meta.annotations(pod)).answers:
        if answer.isdecimal():
            found.add((int(answer), "TCP", next(iter(containers), "")))
    seen = set[tuple[int, str]]()
    for port, protocol, name in sorted(found):
        if (port, protocol) in seen or name not in containers:
            continue
        seen.add((port, protocol))
        argv = first_argv(images, pod, containers[name], {})
        program, pid = argv[0].rpartition("/")[2], pid_of(pod, containers[name])
        for address in _addresses(program, is_configured=name in started):
            yield Socket(address=address, port=port, program=program, pid=pid, protocol=protocol)


def _addresses(program: str, *, is_configured: bool) -> tuple[str, ...]:
    name = program.partition(":")[0].partition(" ")[0]
    if name in _ONLY_OLD or (is_configured and name == "nginx"):
        return (_OLD,)
    return (_OLD, "::") if name in _BOTH else ("::",)

"""The network of a node's machine: what listens, its interfaces and its routes. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import ip_network
from posixpath import basename
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_processes import CONTAINERD_PID, KUBELET_PID, container_processes
from mockube.kubelet.node_objects import internal_ip

_KUBELET: Final = (("127.0.0.1", 10248), ("*", 10250))
_ANY: Final = "0.0.0.0"  # noqa: S104 - in the output of a simulated program
_PROXY: Final = "kube-proxy"
_PROXY_SOCKETS: Final = (("127.0.0.1", 10249), ("*", 10256))
"""Where kube-proxy serves its metrics and its health by default, which its configuration can change."""
_SSHD_PID: Final = 610
_PORTS: Final = range(1, 1 << 16)
_ETCD: Final = "etcd"
_URL_FLAGS: Final = ("listen-client-urls", "listen-peer-urls", "listen-metrics-urls")
_SECURE_PORTS: Final[Mapping[str, str]] = {
    "kube-apiserver": "6443",
    "kube-controller-manager": "10257",
    "kube-scheduler": "10259",
}
"""The default ports of programs with the flags --bind-address and --secure-port."""


def sockets(pods: Sequence[ReadOnlyTree], stopped: Collection[str]) -> list[dict[str, Any]]:
    """Return the TCP sockets that listen on a node: those of its units, and of pods in its network."""
    found = [_socket("127.0.0.1", 40041, "containerd", CONTAINERD_PID)] if "containerd" not in stopped else []
    if "kubelet" not in stopped:
        found += [_socket(address, port, "kubelet", KUBELET_PID) for address, port in _KUBELET]
    for process in container_processes(pods):
        name = process.container["name"]
        addresses = sorted({*_addresses(process.pod, process.container)})
        found += [_socket(address, port, name, process.pid) for address, port in addresses]
    found.append(_socket(_ANY, 22, "sshd", _SSHD_PID))
    return sorted(found, key=lambda each: (each["port"], each["address"]))


def _socket(address: str, port: int, program: str, pid: int) -> dict[str, Any]:
    return {"address": address, "port": port, "program": program, "pid": pid}


def _addresses(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[tuple[str, int]]:
    """Yield where a container listens on a node: a program of the control plane by its flags, another one by its ports."""
    command = container.get("command") or ()
    program = basename(str(command[0])) if command and pod["spec"].get("hostNetwork") else ""
    flags = {name: value for name, _, value in (str(word)[2:].partition("=") for word in command[1:])}
    if program == _PROXY:
        yield from _PROXY_SOCKETS
    elif program == _ETCD:
        for name in _URL_FLAGS:
            yield from _url_addresses(flags.get(name, ""))
    elif program in _SECURE_PORTS:
        port = flags.get("secure-port", _SECURE_PORTS[program])
        yield from _url_addresses(f"//{flags.get('bind-address', _ANY)}:{port}")
    else:
        yield from _declared_ports(pod, container)


def _url_addresses(urls: str) -> Iterator[tuple[str, int]]:
    """Yield the addresses and ports of URLs; what is none is left out."""
    for url in urls.split(","):
        host, _, port = url.rpartition("//")[2].rpartition(":")
        if port.isdecimal() and int(port) in _PORTS:
            yield ("*" if host in (_ANY, "::", "[::]", "") else host), int(port)


def _declared_ports(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[tuple[str, int]]:
    field = "containerPort" if pod["spec"].get("hostNetwork") else "hostPort"
    for port in container.get("ports") or ():
        if port.get(field):
            yield "*", int(port[field])


def interfaces(node: ReadOnlyTree) -> list[tuple[str, str, str, str, str]]:
    """Return name, flags, kind, hardware address and address of each interface."""
    address = internal_ip(node)
    found = [("lo", "LOOPBACK,UP,LOWER_UP", "loopback", "00:00:00:00:00:00", "127.0.0.1/8")]
    if address:
        found.append(
            ("eth0", "BROADCAST,MULTICAST,UP,LOWER_UP", "ether", _hardware_address(address), f"{address}/16")
        )
    for cidr in (node.get("spec") or {}).get("podCIDRs") or ():
        network = ip_network(cidr, strict=False)
        if network.version == 4:
            gateway = str(network.network_address + 1)
            found.append(
                (
                    "cni0",
                    "BROADCAST,MULTICAST,UP,LOWER_UP",
                    "ether",
                    _hardware_address(gateway),
                    f"{gateway}/{network.prefixlen}",
                )
            )
    return found


def _hardware_address(address: str) -> str:
    parts = [int(part) for part in address.split(".")] if "." in address else [0, 0, 0, 1]
    return "02:42:" + ":".join(f"{part:02x}" for part in parts)


def routes(node: ReadOnlyTree) -> list[str]:
    address = internal_ip(node)
    lines = []
    if "." in address:
        prefix = ".".join(address.split(".")[:2])
        lines += [
            f"default via {prefix}.0.1 dev eth0",
            f"{prefix}.0.0/16 dev eth0 proto kernel scope link src {address}",
        ]
    for cidr in (node.get("spec") or {}).get("podCIDRs") or ():
        network = ip_network(cidr, strict=False)
        if network.version == 4:
            lines.append(f"{network} dev cni0 proto kernel scope link src {network.network_address + 1}")
    return lines

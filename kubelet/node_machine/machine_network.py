"""The network of a node's machine: what listens, its interfaces and its routes. Pure."""

from collections.abc import Collection, Iterator, Sequence
from ipaddress import ip_network
from typing import Any, Final

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.kubelet.node_objects import internal_ip

_FIRST_PID: Final = 1200
_KUBELET: Final = (("127.0.0.1", 10248), ("*", 10250))
_ANY: Final = "0.0.0.0"  # noqa: S104 - in the output of a simulated program
_PORT_FLAGS: Final = frozenset({"--secure-port", "--listen-client-urls", "--listen-peer-urls"})


def sockets(pods: Sequence[ReadOnlyTree], stopped: Collection[str]) -> list[dict[str, Any]]:
    """Return the TCP sockets that listen on a node: those of its units, and of pods in its network."""
    found: list[dict[str, Any]] = []
    if "containerd" not in stopped:
        found.append({"address": "127.0.0.1", "port": 40041, "program": "containerd", "pid": 503})
    if "kubelet" not in stopped:
        found += [
            {"address": address, "port": port, "program": "kubelet", "pid": 742} for address, port in _KUBELET
        ]
    pid = _FIRST_PID
    for pod in pods:
        for container in every_container(pod["spec"]):
            pid += 40
            for port in _ports(pod, container):
                found.append({"address": "*", "port": port, "program": container["name"], "pid": pid})
    found.append({"address": _ANY, "port": 22, "program": "sshd", "pid": 610})
    return sorted(found, key=lambda each: (each["port"], each["address"]))


def _ports(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[int]:
    """Yield the ports of a node on which a container listens: those of the network of its node, by its ports and its flags."""
    ports = set()
    for port in container.get("ports") or ():
        number = port.get("containerPort") if pod["spec"].get("hostNetwork") else port.get("hostPort")
        if number:
            ports.add(int(number))
    for word in container.get("command") or () if pod["spec"].get("hostNetwork") else ():
        name, _, value = str(word).partition("=")
        digits = value.rpartition(":")[2]
        if name in _PORT_FLAGS and digits.isdecimal():
            ports.add(int(digits))
    yield from sorted(ports)


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

"""A script that holds the network namespaces of a cluster's pods. They end with it, and it ends with its parent.

`holder.py PARENT` answers requests at its standard input, a socket: each is a packet of JSON, each answer is one, with file descriptors.
The namespace of the cluster connects those of the pods: each pod has a link to it, and all routes of a pod lead there. As root the
script makes them from the machine's rights, as another user from those of a user namespace of its own.
"""

import array
import ctypes
import importlib
import json  # noqa: TID251 - the script has no other library
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = str(Path(__file__).absolute().parent)
GATEWAYS: Final = {4: "169.254.1.1", 6: "fd6d:6f63:6b75::1"}
"""The cluster's own addresses, which are the gateways of the pods."""
_PACKET: Final = 1 << 16
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_LOOPBACK, _ETHERNET = 1, 2
"""The indexes of a pod's links."""
_HOLDER_MAC, _POD_MAC = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
_CLUSTER_SETTINGS: Final = {
    "ipv4/ip_forward": "1",
    "ipv4/icmp_ratelimit": "0",
    "ipv6/icmp/ratelimit": "0",
    "ipv6/conf/all/forwarding": "1",
}
_ALL_GROUPS: Final = "0 2147483647"
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def command() -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).absolute()), str(os.getpid())]


class _Namespace:
    def __init__(self, file: int, messages: socket.socket) -> None:
        self.file = file
        self.messages = messages
        """A socket of rtnetlink in the namespace."""

    def close(self) -> None:
        self.messages.close()
        os.close(self.file)


class _Holder:
    def __init__(self, netlink: Any) -> None:
        self._netlink = netlink
        self.user_namespace = _unshare()
        self._cluster = _Namespace(_open_namespace("net"), netlink.open_socket(netlink.NETLINK_ROUTE))
        self._pods: dict[int, _Namespace] = {}
        self.changes = netlink.open_socket(netlink.NETLINK_ROUTE, netlink.RTMGRP_LINK)
        with _step("addresses"):
            netlink.send(self._cluster.messages, netlink.link_up(_LOOPBACK))
            self.versions = [version for version in GATEWAYS if self._add_gateway(version)]
        with _step("forwarding"):
            _set_all(_CLUSTER_SETTINGS, skips_missing=True)

    def _add_gateway(self, version: int) -> bool:
        try:
            self._netlink.send(
                self._cluster.messages, self._netlink.add_address(_LOOPBACK, GATEWAYS[version])
            )
        except OSError:
            if version == 4:
                raise
            return False  # a machine without IPv6
        return True

    def check(self) -> None:
        """Make a pod's network once, so that what is missing is known before the first pod."""
        with _step("links between namespaces (veth)"):
            link, _ = self.add("check", ["169.254.1.2"], {})
        self.drop(link)

    def add(
        self,
        name: str,
        addresses: Sequence[str],
        settings: Mapping[str, str],
        balancers: str = "",
        *,
        is_node: bool = False,
    ) -> tuple[int, list[int]]:
        """Make the network of a pod, or of a node; return the index of its link, and the namespace.

        `balancers` is a range of loopback addresses that are not the pod's own, but those of load balancers.
        """
        netlink = self._netlink
        more = {"ipv4/conf/all/route_localnet": "1"} if balancers else {}
        pod = self._make_namespace({**self._pod_settings(), **more, **settings})
        try:
            netlink.send(
                self._cluster.messages, netlink.new_veth(name, _HOLDER_MAC, pod.file, "eth0", _POD_MAC)
            )
            link = socket.if_nametoindex(name)
            versions = {6 if ":" in address else 4 for address in addresses}
            gateways = [GATEWAYS[version] for version in versions]
            texts = [netlink.link_up(_LOOPBACK)]
            texts += [netlink.add_address(_ETHERNET, address) for address in addresses]
            texts.append(netlink.link_up(_ETHERNET))
            texts += [netlink.add_neighbour(_ETHERNET, gateway, _HOLDER_MAC) for gateway in gateways]
            texts += [netlink.add_route(_ETHERNET, gateway=gateway) for gateway in gateways]
            if balancers and 4 in versions:
                texts.append(netlink.add_route_before_own_addresses(_ETHERNET, balancers, GATEWAYS[4]))
            netlink.send(pod.messages, *texts)
            if is_node:
                self._lead_to_ports_of_node(pod, addresses)
            texts = [netlink.link_up(link)]
            texts += [netlink.add_neighbour(link, address, _POD_MAC) for address in addresses]
            texts += [netlink.add_route(link, destination=address) for address in addresses]
            netlink.send(self._cluster.messages, *texts)
        except BaseException:
            pod.close()
            raise
        self._pods[link] = pod
        return link, [pod.file]

    def _lead_to_ports_of_node(self, node: _Namespace, addresses: Sequence[str]) -> None:
        """Let what a node sends to its own addresses leave it: its node ports and host ports lead to pods."""
        for version, gateway in GATEWAYS.items():
            address = next((one for one in addresses if (":" in one) is (version == 6)), "")
            if address:
                with suppress(OSError):  # a kernel without rules for routes
                    texts = self._netlink.send_to_own_address_by_gateway(_ETHERNET, address, gateway)
                    for text in texts:
                        self._netlink.send(node.messages, text)

    def _pod_settings(self) -> dict[str, str]:
        """Return the settings as of containerd: each user may listen on any port, and send echo requests."""
        group = os.getegid()  # a user namespace has only one
        groups = _ALL_GROUPS if self.user_namespace is None else f"{group} {group}"
        return {"ipv4/ip_unprivileged_port_start": "0", "ipv4/ping_group_range": groups}

    def drop(self, link: int) -> None:
        pod = self._pods.pop(link, None)
        if pod is None:
            return
        with suppress(OSError):
            self._netlink.send(self._cluster.messages, self._netlink.delete_link(link))
        pod.close()

    def lost_links(self) -> list[int]:
        """Return the links that somebody else has deleted."""
        changed = self._netlink.changed_links(self.changes.recv(_PACKET))
        lost = [link for kind, link in changed if kind == self._netlink.DELETE_LINK and link in self._pods]
        for link in lost:
            self._pods.pop(link).close()
        return lost

    def open_socket(self, link: int, family: int, kind: int, protocol: int) -> socket.socket:
        """Open a socket in the namespace of a pod, or with link 0 in that of the cluster."""
        if not link:
            return socket.socket(family, kind, protocol)
        _enter(self._pods[link].file)
        try:
            return socket.socket(family, kind, protocol)
        finally:
            _enter(self._cluster.file)

    def _make_namespace(self, settings: Mapping[str, str]) -> _Namespace:
        _check(_LIBC.unshare(_CLONE_NEWNET), "unshare")
        try:
            namespace = _Namespace(
                _open_namespace("net"), self._netlink.open_socket(self._netlink.NETLINK_ROUTE)
            )
            _set_all(settings)
            return namespace
        finally:
            _enter(self._cluster.file)


class _step:  # noqa: N801 - used as a function
    """Names the step in the message of an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{self._name}: {error.strerror}") from error


def _unshare() -> "int | None":
    """Enter a new network namespace; return the new user namespace that owns it, if there is one."""
    if os.geteuid() == 0 and not _LIBC.unshare(_CLONE_NEWNET):
        return None
    user, group = os.geteuid(), os.getegid()
    with _step("network namespaces, without root's rights by user namespaces"):
        _check(_LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET), "unshare")
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(line, encoding="ascii")
    return _open_namespace("user")


def _open_namespace(kind: str) -> int:
    return os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


def _enter(namespace: int) -> None:
    _check(_LIBC.setns(namespace, _CLONE_NEWNET), "setns")


def _set_all(settings: Mapping[str, str], *, skips_missing: bool = False) -> None:
    for name, value in settings.items():
        path = Path("/proc/sys/net", name)
        if not skips_missing or path.exists():
            path.write_text(value, encoding="ascii")


def _check(result: int, action: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


def _answer(
    holder: _Holder, request: dict[str, Any]
) -> tuple[dict[str, Any], list[int], "socket.socket | None"]:
    """Return the answer to a request, the file descriptors to send with it, and the socket to close then."""
    action = request.pop("do")
    if action == "add":
        link, files = holder.add(**request)
        return {"link": link}, files, None
    if action == "drop":
        holder.drop(**request)
        return {}, [], None
    opened = holder.open_socket(**request)
    return {}, [opened.fileno()], opened


def _serve(connection: socket.socket, holder: _Holder) -> None:
    poll = select.poll()
    for file in (connection, holder.changes):
        poll.register(file, select.POLLIN)
    while True:
        for file, _ in poll.poll():
            if file == holder.changes.fileno():
                for link in holder.lost_links():
                    _send(connection, {"lost": link})
                continue
            text = connection.recv(_PACKET)
            if not text:
                return
            opened = None
            try:
                answer, files, opened = _answer(holder, json.loads(text))
                _send(connection, answer, files)
            except (OSError, KeyError) as error:
                problem = error.strerror if isinstance(error, OSError) else "the network of the pod is gone"
                _send(connection, {"error": str(problem)})
            finally:
                if opened is not None:
                    opened.close()


def _send(connection: socket.socket, answer: dict[str, Any], files: Sequence[int] = ()) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    connection.sendmsg([json.dumps(answer).encode()], rights)


def main() -> None:
    _LIBC.prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(128 + signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its input
    sys.path.insert(0, _FOLDER)
    netlink = importlib.import_module("netlink")
    connection = socket.socket(fileno=0)
    try:
        holder = _Holder(netlink)
        holder.check()
    except OSError as error:
        _send(connection, {"error": error.strerror or str(error)})
        return
    files = [] if holder.user_namespace is None else [holder.user_namespace]
    _send(connection, {"versions": holder.versions}, files)
    _serve(connection, holder)


if __name__ == "__main__":
    main()

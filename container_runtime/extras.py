"""Which distribution of mockube simulates a program that is missing here, so that a message can name it."""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Final

PROGRAMS: Final[Mapping[str, frozenset[str]]] = {
    "python": frozenset(["python", "python2", "python3", *(f"python3.{minor}" for minor in range(8, 15))]),
    "servers": frozenset(["apachectl", "httpd", "httpd-foreground", "nginx", "nginx-debug"]),
}
"""The programs of containers that each folder of `extras/` has."""
NODE_PROGRAMS: Final[Mapping[str, frozenset[str]]] = {
    "machines": frozenset(
        ["containerd", "crictl", "etcdctl", "etcdutl", "ip", "journalctl", "kubeadm", "kubelet", "netstat", "openssl", "ps", "ss", "systemctl"]
    )
}  # fmt: skip
"""The programs of nodes that each has."""


def missing_distribution(program: str, *, on_node: bool = False) -> str:
    """Return the distribution that would simulate a program; "" if none does, or if it is installed."""
    name, programs = program.rpartition("/")[2], NODE_PROGRAMS if on_node else PROGRAMS
    extra = next((extra for extra, names in programs.items() if name in names), "")
    return f"mockube-{extra}" if extra and not _is_installed(extra) else ""


def hint(distribution: str) -> str:
    """Return what a message about a missing program says of the distribution that has it; "" without one."""
    return f" without {distribution}, which pip installs" if distribution else ""


@cache
def _is_installed(extra: str) -> bool:
    try:
        return find_spec(f"mockube.extras.{extra}") is not None
    except ModuleNotFoundError:  # without the folder of all extras
        return False

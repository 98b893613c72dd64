"""What an installer such as kubeadm has left on nodes: control-plane nodes, files, and where the logs of their programs are.

`mockube up` writes it as JSON:

    {"controlPlanes": 1, "files": {"control-plane-1": {"/etc/kubernetes/manifests/etcd.yaml": "..."}}, "logs": {"etcd": "/..."}}
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from .node_pools.pool import NodePool

CONTROL_PLANE: Final = "control-plane"
"""The name of the pool of control-plane nodes: control-plane-1 and so on."""
DEFAULT_PORT: Final = 6443
NODE_ADDRESS: Final = "$(NODE_IP)"
"""Stands for the address of its node in a file."""
_PEER: Final = re.compile(r"\$\(NODE_IP:([^()$]+)\)")
"""Stands for the address of the node of a name."""
_PEER_MEMBER: Final = re.compile(r"[^=,\s]{1,253}=https://\$\(NODE_IP:[^()$]{1,253}\):[0-9]{1,5},?")
"""A member of an etcd cluster on a node whose address is not known."""
MAX_CONTROL_PLANES: Final = 15
LABEL_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_NO_LOAD_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


def address_of_peer(node: str) -> str:
    """Return what stands for the address of another node in a file."""
    return f"$(NODE_IP:{node})"


def peers_of(texts: Iterable[str]) -> set[str]:
    """Return the names of the other nodes whose addresses files need."""
    return {name for text in texts for name in _PEER.findall(text)}


def with_addresses(text: str, own: str, others: Mapping[str, str]) -> str:
    """Return a file with the addresses of nodes; a member of an etcd cluster that is on none of the `others` is left out."""
    text = _PEER.sub(lambda match: others.get(match[1]) or match[0], text)
    return _PEER_MEMBER.sub("", text).replace(NODE_ADDRESS, own)


class Installation(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    control_planes: int = 0
    """The number of control-plane nodes, besides those of `--simulate-nodes`."""
    port: int = DEFAULT_PORT
    """The port of the API server on these nodes."""
    files: Mapping[str, Mapping[str, str]] = {}
    """The texts of files by node and path."""
    logs: Mapping[str, str] = {}
    """The paths of files of this machine by the name of the static pod's container whose log they are."""
    certificates: Mapping[str, str] = {}
    """The paths of the API server's certificates on this machine by their paths on control-plane nodes."""
    authority: tuple[str, str] | None = None
    """The paths of the CA's certificate and key on this machine, which signs the certificates of control-plane nodes."""
    administrator: tuple[str, str] | None = None
    """The paths of the certificate and the key of the administrator on this machine, whose kubeconfig control-plane nodes have."""

    @property
    def control_plane_pool(self) -> NodePool | None:
        """The control-plane nodes, with kubeadm's labels and its taint."""
        if not self.control_planes:
            return None
        return NodePool(
            name=CONTROL_PLANE,
            count=self.control_planes,
            labels={LABEL_CONTROL_PLANE: "", _NO_LOAD_BALANCER: ""},
            taints=({"key": LABEL_CONTROL_PLANE, "effect": "NoSchedule"},),
        )


NOTHING_INSTALLED: Final = Installation()


def read_installation(text: str) -> Installation:
    """Read a file; raise `ArgumentTypeError` if there is no installation in it."""
    try:
        return msgspec.json.decode(Path(text).read_bytes(), type=Installation)
    except OSError as error:
        raise ArgumentTypeError(f"{text}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ArgumentTypeError(f"{text}: {error}") from error

"""The names of the programs that a node has. Pure."""

from typing import Final

from mockube.container_runtime.images.programs import ImagePrograms, program_sets

NODE_PROGRAM_NAMES: Final = frozenset(
    ["containerd", "crictl", "etcdctl", "etcdutl", "ip", "journalctl", "kubeadm", "kubectl", "kubelet", "netstat", "openssl", "ss", "systemctl"]
)  # fmt: skip
"""The programs that only nodes have, or that show something else on nodes."""
ETCD_PROGRAMS: Final = frozenset(["etcdctl", "etcdutl"])
"""The programs that only control-plane nodes have."""
_FURTHER: Final = frozenset(
    ["chroot", "curl", "free", "less", "nano", "nsenter", "ping", "ps", "python3", "top", "vi", "vim", "wget"]
)
PROGRAM_NAMES: Final[frozenset[str]] = (
    frozenset(name for each in ("debian", "procps") for name in program_sets()[each].programs.split())
    | _FURTHER
)
"""The programs of Debian, with those that administrators install."""


def node_programs(*, is_control_plane: bool) -> ImagePrograms:
    names = PROGRAM_NAMES | NODE_PROGRAM_NAMES
    return ImagePrograms(names if is_control_plane else names - ETCD_PROGRAMS)

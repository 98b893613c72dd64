"""The kubelets of nodes, as programs in pods reach them at the addresses of the nodes."""

from typing import Protocol

from .process_port import ProcessPort


class Kubelets(Protocol):
    def port_of(self, node: str) -> ProcessPort | None:
        """Return where the kubelet of a node is reached; None if it does not run."""

    def is_disconnected(self, node: str) -> bool:
        """Return whether nothing reaches the node."""


class _NoKubelets:
    """For a run-time without kubelets that serve clients."""

    def port_of(self, _: str) -> ProcessPort | None:
        return None

    def is_disconnected(self, _: str) -> bool:
        return False


NO_KUBELETS: Kubelets = _NoKubelets()

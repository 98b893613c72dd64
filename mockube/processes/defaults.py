"""The defaults of a cluster."""

from typing import Final

NAME: Final = "default"
NODES: Final = 3
KRUISE: Final = "kruise"
"""The default pack: kinds that are served besides those of Kubernetes."""

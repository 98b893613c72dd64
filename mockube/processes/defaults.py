"""The defaults of a cluster."""

from typing import Final

NAME: Final = "default"
NODES: Final = 3
KRUISE: Final = "kruise"
"""Kinds that are served besides Kubernetes' own."""

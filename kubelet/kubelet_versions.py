"""The versions of simulated kubelets: that of the API server, or an older one that an annotation of the node names. Pure.

Kubernetes supports kubelets up to three minor releases older than the API server, and never newer ones: an annotation that names
another release stands for the nearest one that is supported.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.component_base.release_options import read_minor

from .node_objects import minor_number

KUBELET_VERSION: Final = "mockube.dev/kubelet-version"
"""The annotation of a node whose kubelet is not upgraded with the API server, such as `1.36`."""
MAX_SKEW: Final = 3
"""How many minor releases a kubelet may be older than the API server."""


def kubelet_version(annotations: Mapping[str, str], server_version: str) -> str:
    """Return the version of a node's kubelet, such as v1.36.3; an annotation that names no release has no effect."""
    server = minor_number(server_version)
    requested = _requested_minor(annotations)
    if not server or requested is None:
        return server_version
    number = min(max(minors.number(requested), server - MAX_SKEW), server)
    return server_version if number == server else f"v{minors.RELEASES[f'1.{number}']}"


def is_unsupported(annotations: Mapping[str, str], server_version: str) -> bool:
    """Return whether the annotation names a release that the API server does not support, or none."""
    requested = _requested_minor(annotations)
    if requested is None:
        return KUBELET_VERSION in annotations
    return minor_number(kubelet_version(annotations, server_version)) != minors.number(requested)


def _requested_minor(annotations: Mapping[str, str]) -> str | None:
    try:
        return read_minor(annotations.get(KUBELET_VERSION, ""))
    except ArgumentTypeError:
        return None

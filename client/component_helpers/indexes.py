"""Indexes that several components share: pods by node and claim, attachments by node."""

from collections.abc import Iterable
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

BY_NODE: Final = "node"
"""The index of pods by their node."""
BY_CLAIM: Final = "claim"
"""The index of pods by the claims that they use, as `namespace/name`."""
BY_ATTACHED_NODE: Final = "attached-node"
"""The index of VolumeAttachments by their node."""


def node_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.node,) if pod.node else ()


def claims_of_pod(pod: PodView) -> Iterable[str]:
    """Yield the keys of a pod's claims; those of ephemeral volumes are named after the pod and the volume."""
    for volume in (pod.object.get("spec") or {}).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield f"{pod.key.namespace}/{volume['persistentVolumeClaim']['claimName']}"
        elif "ephemeral" in volume:
            yield f"{pod.key.namespace}/{pod.key.name}-{volume['name']}"


def node_of_attachment(attachment: ReadOnlyTree) -> Iterable[str]:
    return (attachment["spec"].get("nodeName") or "",)

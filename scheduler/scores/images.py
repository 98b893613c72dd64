"""Score nodes by the images of a pod that they have.

Upstream: plugins/imagelocality.
"""

import math
from collections.abc import Sequence
from itertools import compress
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .score import MAX_NODE_SCORE, NothingCounted, score_nodes

_MEGABYTE: Final = 1024 * 1024
_MIN_IMAGE_BYTES: Final = 23 * _MEGABYTE
_MAX_IMAGE_BYTES: Final = 1000 * _MEGABYTE


def image_locality(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> Sequence[int] | None:
    """Prefer nodes with the pod's images. An image on few nodes counts less, so that not all pods are scheduled there."""
    locality = grouped_image_locality(pod, snapshot)
    if locality is None or not any(node.images for node in nodes):
        return None
    return score_nodes(locality, nodes, snapshot)


class ImageLocality(NothingCounted):
    """The part of a node is which of the pod's images it has."""

    def __init__(self, images: Sequence[str], count: int) -> None:
        self._images = images
        self._maximum = _MAX_IMAGE_BYTES * count

    def part(self, node: NodeInfo, _: None) -> tuple[bool, ...]:
        return tuple(image in node.images for image in self._images)

    def scores(
        self, parts: Sequence[tuple[bool, ...]], _: Sequence[int], snapshot: ClusterSnapshot
    ) -> list[int]:
        sizes = [_scaled_size(image, snapshot) for image in self._images]
        return [self._score(sum(compress(sizes, part))) for part in parts]

    def _score(self, size: int) -> int:
        bounded = min(max(size, _MIN_IMAGE_BYTES), self._maximum)
        return MAX_NODE_SCORE * (bounded - _MIN_IMAGE_BYTES) // (self._maximum - _MIN_IMAGE_BYTES)


def grouped_image_locality(pod: PodInfo, snapshot: ClusterSnapshot) -> ImageLocality | None:
    images, count = _images_of(pod, snapshot)
    return ImageLocality(images, count) if images else None


def _images_of(pod: PodInfo, snapshot: ClusterSnapshot) -> tuple[list[str], int]:
    """Return the names of a pod's images, and how many count for the highest score."""
    containers: Sequence[ReadOnlyTree] = pod.spec.get("containers") or ()
    if not snapshot.gates.is_before("1.30"):
        containers = (*(pod.spec.get("initContainers") or ()), *containers)
    images = [container.get("image", "") for container in containers]
    volumes = [
        volume["image"].get("reference", "") for volume in pod.spec.get("volumes") or () if "image" in volume
    ]
    if snapshot.gates.is_before("1.36"):
        volumes = []
    count = len(images) + (0 if snapshot.gates.is_before("1.37") else len(volumes))
    return [_normalize_name(image) for image in (*images, *volumes)], count


def _normalize_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _scaled_size(image: str, snapshot: ClusterSnapshot) -> int:
    sizes = snapshot.image_sizes(image)
    # An image has the size that the first node reports.
    return math.trunc(next(iter(sizes.values())) * (len(sizes) / len(snapshot.nodes))) if sizes else 0

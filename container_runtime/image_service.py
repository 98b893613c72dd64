"""The contract between a kubelet and the images of its run-time, as the ImageService of CRI is one.

Upstream: staging/src/k8s.io/cri-api. A kubelet decides when an image is pulled, and with which credentials; where an image comes from,
and whether it exists, only the run-time knows. One service serves all nodes, each of which has images of its own.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class StoredImage(Struct, frozen=True, kw_only=True):
    """An image that a registry, or a node, has."""

    names: tuple[str, ...]
    """Its names with a digest, and those with a tag."""
    size: int = 0
    """Its bytes, as they are downloaded."""
    needs_credentials: bool = False
    is_local: bool = False
    """Whether it stands for programs of this machine, which nobody pulls."""


class PullFailed(Exception):
    """An image cannot be pulled; the message is the run-time's, as Events and statuses contain it."""


class ImageService(Protocol):
    def image_status(self, node: str, image: str) -> StoredImage | None:
        """Return an image that a node has; None if it does not have it."""

    def list_images(self, node: str) -> Sequence[StoredImage]:
        """Return the images of a node."""

    def pull_image(self, image: str, *, has_credentials: bool) -> StoredImage:
        """Return the image that a registry has by a name; raise `PullFailed` if a pull fails.

        A node has it from `add_image` on.
        """

    def add_image(self, node: str, image: StoredImage) -> None:
        """Store an image on a node: one that was pulled, or that the node has had before."""

    def remove_image(self, node: str, image: StoredImage) -> None:
        """Remove an image from a node, with all of its names."""

    def forget_node(self, node: str) -> None:
        """Drop the images of a node that was deleted."""


class NodeStores:
    """The images of nodes, by any of their names."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, StoredImage]] = {}

    def find(self, node: str, name: str) -> StoredImage | None:
        images = self._nodes.get(node)
        return images.get(name) if images else None

    def all(self, node: str) -> Sequence[StoredImage]:
        return [*{id(image): image for image in self._nodes.get(node, {}).values()}.values()]

    def add(self, node: str, image: StoredImage) -> None:
        images = self._nodes.setdefault(node, {})
        for name in image.names:
            images[name] = image

    def remove(self, node: str, image: StoredImage) -> None:
        for name in image.names:
            self._nodes.get(node, {}).pop(name, None)

    def forget(self, node: str) -> None:
        self._nodes.pop(node, None)

"""The images that run as processes of this machine: every node has them, and nobody pulls them."""

from collections.abc import Sequence

from mockube.container_runtime.image_service import PullFailed, StoredImage
from mockube.container_runtime.images.resolution import full_name

from .images import ImageMap


class ProcessImages:
    """The `ImageService` of a map from images to commands."""

    def __init__(self, images: ImageMap) -> None:
        self._images = images

    def image_status(self, node: str, image: str) -> StoredImage | None:
        del node
        if self._images.find(image) is None:
            return None
        return StoredImage(names=(full_name(image),), is_local=True)

    def list_images(self, node: str) -> Sequence[StoredImage]:
        del node
        return ()

    def pull_image(self, image: str, *, has_credentials: bool) -> StoredImage:
        del has_credentials
        local_image = self.image_status("", image)
        if local_image is None:
            raise PullFailed(f'no command is listed for the image "{image}"')
        return local_image

    def add_image(self, node: str, image: StoredImage) -> None:
        """Ignore it: no node has images of its own."""

    def remove_image(self, node: str, image: StoredImage) -> None:
        """Ignore it, as above."""

    def forget_node(self, node: str) -> None:
        """Ignore it, as above."""

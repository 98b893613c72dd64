"""The images that simulated nodes pull: those that registries have, as far as is known without a network."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mockube.container_runtime.image_service import NodeStores, PullFailed, StoredImage
from mockube.container_runtime.images.resolution import full_name, image_id, is_known, is_loaded, resolve
from mockube.container_runtime.images.table import ImageTable

_NOT_FOUND: Final = "rpc error: code = NotFound desc = failed to pull and unpack image "
_UNKNOWN: Final = "nothing is known of this image, and the flag --unknown-images=fail is set: `mockube images load` says that it exists"


class SimulatedImages:
    """The `ImageService` of simulated nodes."""

    def __init__(self, images: ImageTable, *, fails_unknown: bool = False) -> None:
        """`fails_unknown`: pulls of images fail of which nothing is known."""
        self._images = images
        self._stores = NodeStores()
        self._fails_unknown = fails_unknown

    def image_status(self, node: str, image: str) -> StoredImage | None:
        stored = self._stores.find(node, full_name(image))
        return (
            self.pull_image(image, has_credentials=True)
            if stored is None and is_loaded(self._images, image)
            else stored
        )

    def list_images(self, node: str) -> Sequence[StoredImage]:
        return self._stores.all(node)

    def pull_image(self, image: str, *, has_credentials: bool) -> StoredImage:
        resolution = resolve(self._images, image, has_pull_secret=has_credentials)
        if resolution.error or resolution.invalid:
            raise PullFailed(resolution.error or resolution.invalid)
        if self._fails_unknown and not is_known(self._images, image):
            raise PullFailed(f'{_NOT_FOUND}"{resolution.name}": {_UNKNOWN}')
        is_private = has_credentials and bool(resolve(self._images, image).error)
        return _stored_image(
            (image_id(image), resolution.name), resolution.size, needs_credentials=is_private
        )

    def add_image(self, node: str, image: StoredImage) -> None:
        self._stores.add(node, image)

    def remove_image(self, node: str, names: Sequence[str]) -> None:
        self._stores.remove(node, names)

    def forget_node(self, node: str) -> None:
        self._stores.forget(node)


@lru_cache(maxsize=1024)
def _stored_image(names: tuple[str, ...], size: int, *, needs_credentials: bool) -> StoredImage:
    """Return an image, which the nodes that have it share."""
    return StoredImage(names=names, size=size, needs_credentials=needs_credentials)

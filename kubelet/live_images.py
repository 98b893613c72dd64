"""The watch of the images that a cluster's ConfigMap adds, while the kubelets run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.informer import Informer
from mockube.client.cache.store import Change
from mockube.client.resources import Key
from mockube.container_runtime.images.live import NAME, NAMESPACE, live_images
from mockube.container_runtime.images.table import ImageTable, LiveImages

CONFIG_MAP: Final = Key(NAMESPACE, NAME)


class LiveImagesReader:
    """Adds to the table of images what the ConfigMap of the cluster says."""

    def __init__(self, images: ImageTable, config_maps: Informer[ReadOnlyTree]) -> None:
        self._images = images
        self._config_maps = config_maps
        config_maps.add_handler(self._on_change)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read the ConfigMap; what it says is forgotten when the kubelets end."""
        self._images.set_live(live_images(self._config_maps.lister.get(*CONFIG_MAP)))
        try:
            yield
        finally:
            self._images.set_live(LiveImages())

    def _on_change(self, change: Change) -> None:
        if Key.of(change.last_known) == CONFIG_MAP:
            self._images.set_live(live_images(change.new))

"""The images in the status of nodes: as a kubelet, with a delay in which others are pulled, and never with each pull."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Lister
from mockube.client.flowcontrol import Rate, TokenBucket
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.container_runtime.image_service import StoredImage
from mockube.container_runtime.images.resolution import full_name

from .settings import KubeletContext

MAX_IMAGES: Final = 50
"""`nodeStatusMaxImages` of a kubelet."""
MAX_NAMES: Final = 5
"""The number of names of one image in the status; upstream's MaxNamesPerImageInNodeStatus."""
_PERIOD: Final = timedelta(seconds=10)
"""The period in which a kubelet computes the status of its node."""
_RATE: Final = Rate(qps=20.0, burst=50)
"""Of all nodes together, so that pulls on thousands of nodes do not delay other writes."""


def reported_images(present: Sequence[ReadOnlyTree], images: Sequence[StoredImage]) -> list[ReadOnlyTree]:
    """Return the images of a status: those that it has, and others of the node, the largest first."""
    entries = [
        _Entry(names=[*(image.get("names") or ())], size=image.get("sizeBytes") or 0) for image in present
    ]
    by_name = {full_name(name): entry for entry in entries for name in entry.names}
    for image in sorted(images, key=lambda image: (-image.size, image.names)):
        entry = next((by_name[name] for name in image.names if name in by_name), None)
        if entry is None and len(entries) < MAX_IMAGES:
            entry = _Entry(names=[], size=image.size)
            entries.append(entry)
        new_names = [name for name in dict.fromkeys(image.names) if name not in by_name]
        if entry is not None and len(entry.names) + len(new_names) <= MAX_NAMES:
            entry.names += new_names
            by_name |= dict.fromkeys(new_names, entry)
    entries.sort(key=lambda entry: -entry.size)
    return [{"names": entry.names, "sizeBytes": entry.size} for entry in entries]


class _Entry(Struct):
    names: list[str]
    size: int


class NodeImages:
    """Writes the images of nodes into their status."""

    def __init__(
        self,
        context: KubeletContext,
        nodes: Lister[ReadOnlyTree],
        images_of: Callable[[str], Sequence[StoredImage]],
    ) -> None:
        """`images_of` returns the images of a node."""
        self._client = context.client
        self._clock = context.clock
        self._nodes = nodes
        self._bucket = TokenBucket(_RATE, context.clock)
        self._loop = ReconcileLoop(
            "simulated-node-images", self._write, workers=1, clock=context.clock, metrics=context.metrics
        )
        self._images_of = images_of

    def add(self, node: str) -> None:
        """Note that a node has a new image. The node is written when the period is over, and once for all until then."""
        self._loop.add_after(Key("", node), _PERIOD)

    async def run(self) -> None:
        await self._loop.run()

    async def _write(self, key: Key) -> timedelta | None:
        node = self._nodes.get(*key)
        if node is None:
            return None
        present = (node.get("status") or {}).get("images") or ()
        images = reported_images(present, self._images_of(key.name))
        if images == [*present]:
            return None
        if wait := self._bucket.take():
            await self._clock.sleep(wait)
        metadata = {
            "resourceVersion": meta.resource_version(node)
        }  # a pool may have changed the images meanwhile
        with suppress(NotFound):
            body = {"metadata": metadata, "status": {"images": images}}
            await self._client.patch(kinds.NODES, key, body, subresource="status")
        return None

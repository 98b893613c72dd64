"""The nodes whose disk is nearly full of images and of what their containers have written.

A node is looked at when its run-time reports that little of its disk is left, and from then on until enough is.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.container_runtime.disk_usage import EPHEMERAL_STORAGE, disk_size
from mockube.container_runtime.image_service import ImageService, StoredImage
from mockube.container_runtime.images.resolution import full_name
from mockube.container_runtime.runtime import ContainerRuntime

from .evictions import Evictions
from .node_pressure import NodePressure
from .pod_lifecycle.eviction import EVICTED
from .pod_lifecycle.pressure_eviction import Observation, PodUsage, disk_threshold
from .settings import KubeletContext

_PRESSURE: Final = {
    "type": "DiskPressure",
    "status": "True",
    "reason": "KubeletHasDiskPressure",
    "message": "kubelet has disk pressure",
}
_LEAST: Final = 4096
"""What a container takes on a disk that has written nothing."""
_HIGH, _LOW = 85, 80
"""The percentages of a disk in use from which on images are removed, and down to which."""
_COLLECTION_PERIOD: Final = timedelta(minutes=5)
"""The time between two collections of images, from the start of a node on."""
_GIBIBYTE: Final = 1 << 30


class DiskPressure(NodePressure):
    def __init__(
        self,
        context: KubeletContext,
        runtime: ContainerRuntime,
        images: ImageService,
        evictions: Evictions,
        enqueue: Callable[[Key], None],
    ) -> None:
        """`enqueue` is called with the key of a pod that is evicted."""
        super().__init__(context, evictions, enqueue, resource=EPHEMERAL_STORAGE, pressure=_PRESSURE)
        self._pods = context.informers.of(PODS).lister
        self._runtime, self._images = runtime, images
        self._collections: dict[str, tuple[datetime, bool]] = {}
        """The time of the next collection of images on a node with a full disk, and whether the last one failed, by name."""

    def forget_node(self, name: str) -> None:
        super().forget_node(name)
        self._collections.pop(name, None)

    async def _look_at(self, key: Key) -> timedelta | None:
        for pod in self._pods.by_index(BY_NODE, key.name):
            if pod.is_terminal and (pod.object.get("status") or {}).get("reason") == EVICTED:
                self._runtime.remove_containers(pod.uid)
        await self._collect_images(key)
        return await super()._look_at(key)

    def _observe(self, node: ReadOnlyTree) -> Observation:
        name, size = meta.name(node), disk_size(node)
        images = sum(image.size for image in self._images.list_images(name))
        available = max(size - images - self._runtime.node_disk_use(name), 0)
        pods = tuple(self._usage(pod) for pod in self._active_pods(name) if pod.uid not in self._evictions)
        return Observation(available=available, threshold=disk_threshold(available, size), pods=pods)

    def _active_pods(self, node: str) -> Iterator[PodView]:
        return (pod for pod in self._pods.by_index(BY_NODE, node) if not pod.is_terminal)

    def _usage(self, pod: PodView) -> PodUsage:
        usage = self._runtime.disk_usage(pod.object)
        written = {} if usage is None else usage.containers
        return PodUsage(
            pod=pod.object,
            resource=EPHEMERAL_STORAGE,
            used={
                name: max(written.get(name, 0), _LEAST)
                for name in (container["name"] for container in every_container(pod.object["spec"]))
            },
            in_volumes=0 if usage is None else sum(usage.volumes.values()),
        )

    # --- what can be freed without an eviction

    async def _reclaim(self, node: ReadOnlyTree) -> None:
        """Remove the containers of pods that have ended, and the images that no pod uses."""
        for pod in self._pods.by_index(BY_NODE, meta.name(node)):
            if pod.is_terminal:
                self._runtime.remove_containers(pod.uid)
        await self._remove_images(node, disk_size(node))

    async def _collect_images(self, key: Key) -> None:
        """Remove images from time to time while too much of a disk is in use; report what does not help."""
        node = self._nodes.get(*key)
        if node is None:
            return
        now, size, available = self._now(), disk_size(node), self._observe(node).available
        percent = 100 - available * 100 // size
        if percent < _HIGH:
            self._collections.pop(key.name, None)
            return
        due, has_failed = self._collections.setdefault(key.name, (_next_collection(node, now), False))
        if now < due:
            return
        needed = size * (100 - _LOW) // 100 - available
        freed = await self._remove_images(node, needed)
        if freed < needed:
            message = (
                f"Insufficient free disk space on the node's image filesystem ({percent}% of {size / _GIBIBYTE:.1f} GiB used). "
                f"Failed to free sufficient space by deleting unused images (freed {freed} bytes). "
                "Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
            )
            for reason in ("FreeDiskSpaceFailed", *(["ImageGCFailed"] if has_failed else [])):
                self._recorder.record_on(key.name, node, "Warning", reason, message)
        self._collections[key.name] = due + _COLLECTION_PERIOD, freed < needed

    async def _remove_images(self, node: ReadOnlyTree, needed: int) -> int:
        """Remove images that no pod of a node uses until enough bytes are free; return how many that are."""
        name, removed, freed = meta.name(node), list[StoredImage](), 0
        in_use = {
            full_name(container.get("image") or "")
            for pod in self._active_pods(name)
            for container in every_container(pod.object["spec"])
        }
        for image in sorted(self._images.list_images(name), key=lambda image: image.names):
            if freed < needed and not image.is_local and in_use.isdisjoint(image.names):
                self._images.remove_image(name, image.names)
                removed.append(image)
                freed += image.size
        if removed:
            await self._write_images(node, {each for image in removed for each in image.names})
        return freed

    async def _write_images(self, node: ReadOnlyTree, removed: set[str]) -> None:
        """Remove images from the status of a node."""
        present: list[Any] = (node.get("status") or {}).get("images") or []
        images = [image for image in present if removed.isdisjoint(map(full_name, image.get("names") or ()))]
        if images != present:
            with suppress(NotFound):
                body = {"status": {"images": images}}
                await self._client.patch(NODES, Key.of(node), body, subresource="status")


def _next_collection(node: ReadOnlyTree, now: datetime) -> datetime:
    """Return the first time of a collection after now; the periods begin with the node."""
    text = meta.metadata(node).get("creationTimestamp")
    created = parse_time(text) if text else now
    return now + _COLLECTION_PERIOD - (now - created) % _COLLECTION_PERIOD

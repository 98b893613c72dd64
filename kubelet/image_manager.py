"""The images of the simulated nodes, and what their kubelets remember of the pulls of pods.

The decisions are in `pod_lifecycle/image_pulls.py`. After a restart of the manager, a node has the images in its status and those of the
pods that have run on it; back-offs begin again, as when a kubelet is restarted.
"""

from collections.abc import Callable
from datetime import datetime

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.container_runtime.image_service import ImageService, PullFailed, StoredImage
from mockube.container_runtime.images.resolution import full_name
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status

from .pod_lifecycle.container import never_ran
from .pod_lifecycle.image_pulls import NO_PULLS, ImagesOfNode, PodPulls, PullState
from .pull_secrets import PullSecrets, matches_registry, pull_secret_names
from .start_checks import ReferencedObjects


class ImageManager:
    """The images of all nodes, and the pulls of all pods that wait for an image."""

    def __init__(
        self,
        records: Records,
        service: ImageService,
        nodes: Lister[ReadOnlyTree],
        pods: Lister[PodView],
        secrets: PullSecrets,
        *,
        on_change: Callable[[str], None],
    ) -> None:
        """`on_change` is called with the name of a node that has a new image."""
        self._records = records
        self._service = service
        self._nodes = nodes
        self._pods = pods
        self._secrets = secrets
        self._on_change = on_change
        self._known_nodes: set[str] = set()
        """The nodes whose earlier images are known."""

    def begin(self, pod: PodView, objects: ReferencedObjects, kubelet_minor: int) -> "PodImageAccess":
        """Return the access of one step of a pod to the images of its node."""
        self._load_node(pod.node)
        state = self._records.find(pod.uid, PullState) or NO_PULLS
        return PodImageAccess(pod, self._service, self._secrets, objects, state, kubelet_minor)

    def note_step(self, pod: PodView, access: "PodImageAccess") -> None:
        """Store what the step of a pod has pulled, and what the next step needs."""
        pulls = access.pulls
        if pulls is None:
            return
        for image in pulls.pulled.values():
            if self._service.image_status(pod.node, image.names[-1]) is None:
                self._service.add_image(pod.node, image)
                self._on_change(pod.node)
        state = pulls.state
        if state.failures or state.results:
            self._records.put(pod.uid, state)
        else:
            self._records.pop(pod.uid, PullState)

    def forget_node(self, node: str) -> None:
        self._known_nodes.discard(node)
        self._service.forget_node(node)

    def note_status(self, node: ReadOnlyTree) -> None:
        """Add the images in the status of a node, which a pool or a client may have set."""
        name = meta.name(node)
        for image in (node.get("status") or {}).get("images") or ():
            names = tuple(map(full_name, image.get("names") or ()))
            if names and self._service.image_status(name, names[-1]) is None:
                self._service.add_image(name, StoredImage(names=names, size=image.get("sizeBytes") or 0))

    def _load_node(self, name: str) -> None:
        """Add the images in the status of a node, and those of the pods that have run on it."""
        node = self._nodes.get("", name)
        if name in self._known_nodes or node is None:
            return
        self._known_nodes.add(name)
        self.note_status(node)
        for pod in self._pods.by_index(BY_NODE, name):
            for container in every_container(pod.object["spec"]):
                status = container_status(pod.object, container["name"])
                if status is not None and not never_ran(status):
                    self._add_earlier(name, container.get("image") or "")

    def _add_earlier(self, node: str, image: str) -> None:
        if self._service.image_status(node, image) is None:
            try:
                self._service.add_image(node, self._service.pull_image(image, has_credentials=True))
            except PullFailed:
                self._service.add_image(node, StoredImage(names=(full_name(image),)))


class PodImageAccess:
    """The access of one step of a pod to the images of its node. The step may be computed several times, until all is known."""

    def __init__(
        self,
        pod: PodView,
        service: ImageService,
        secrets: PullSecrets,
        objects: ReferencedObjects,
        state: PullState,
        kubelet_minor: int,
    ) -> None:
        self._pod = pod
        self._service = service
        self._secrets = secrets
        self._objects = objects
        self._state = state
        self._kubelet_minor = kubelet_minor
        self._unknown: dict[Key, ReadOnlyTree] = {}
        """The Secrets whose registries the step needed."""
        self.pulls: PodPulls | None = None
        """The pulls of the latest computation."""

    def start(self, now: datetime) -> PodPulls:
        """Return the pulls of a computation of the step."""
        node = self._pod.node
        images = ImagesOfNode(
            find=lambda image: self._service.image_status(node, image),
            pull=self._service.pull_image,
            has_credentials=self._has_credentials,
            kubelet_minor=self._kubelet_minor,
        )
        self.pulls = PodPulls(self._pod.object, self._state, images, now)
        return self.pulls

    @property
    def has_unknown(self) -> bool:
        return bool(self._unknown)

    async def find_unknown(self) -> None:
        unknown, self._unknown = self._unknown, {}
        await self._secrets.load(unknown)

    def _has_credentials(self, image: str) -> bool:
        has_match = False
        for name in pull_secret_names(self._pod.object):
            secret = self._objects.secret(name)
            if secret is None or "metadata" not in secret:
                continue
            registries = self._secrets.find(secret)
            if registries is None:
                self._unknown[Key.of(secret)] = secret
            else:
                has_match = has_match or matches_registry(registries, image)
        return has_match

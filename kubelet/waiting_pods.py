"""The pods with containers that wait for what is not simulated: they are tried again when more is known."""

from collections.abc import Callable

from mockube.apimachinery import meta
from mockube.client.cache.store import Change, Lister
from mockube.client.kinds import NAMESPACES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.container_runtime.unknown_programs import ANNOTATION

from .containers import Containers
from .pod_lifecycle.unknown_programs import waits_for_programs
from .settings import KubeletContext


class WaitingPods:
    def __init__(
        self,
        context: KubeletContext,
        containers: Containers,
        pods: Lister[PodView],
        enqueue: Callable[[Key], None],
    ) -> None:
        self._pods = pods
        self._enqueue = enqueue
        self._namespaces = context.informers.of(NAMESPACES)
        self._namespaces.add_handler(self._on_namespace_change)
        containers.image_table.on_change(self._try_again)

    async def wait_synced(self) -> None:
        """Wait until the annotations of namespaces are known."""
        await self._namespaces.wait_synced()

    def _on_namespace_change(self, change: Change) -> None:
        before, after = (meta.annotations(each or {}).get(ANNOTATION) for each in (change.old, change.new))
        if before != after:
            self._try_again()

    def _try_again(self) -> None:
        for pod in self._pods.all():
            if waits_for_programs(pod.object):
                self._enqueue(pod.key)

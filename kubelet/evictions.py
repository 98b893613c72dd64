"""The pods that kubelets evict because they use more of the disk than they may."""

from datetime import datetime

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.container_runtime.disk_usage import exceeded_limit, has_disk_limits
from mockube.container_runtime.runtime import ContainerRuntime

from .pod_lifecycle.eviction import Eviction
from .pod_lifecycle.preemption import is_critical


class Evictions:
    def __init__(self, runtime: ContainerRuntime) -> None:
        self._runtime = runtime
        self._evicted: dict[str, Eviction] = {}
        """The evictions by the uids of their pods."""

    def find(self, pod: PodView, now: datetime) -> Eviction | None:
        """Return the eviction of a pod; None if it stays."""
        present = self._evicted.get(pod.uid)
        if present is not None or pod.is_terminal or pod.deleting:
            return present
        message = self._exceeded_limit(pod.object)
        if not message:
            return None
        eviction = self._evicted[pod.uid] = Eviction(now, message)
        return eviction

    def _exceeded_limit(self, pod: ReadOnlyTree) -> str:
        if not has_disk_limits(pod) or is_critical(pod):
            return ""
        usage = self._runtime.disk_usage(pod)
        return "" if usage is None else exceeded_limit(pod, usage)

    def forget(self, uid: str) -> None:
        self._evicted.pop(uid, None)

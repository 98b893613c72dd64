"""The pods that kubelets evict: because they use more of the disk than they may, or because their node lacks memory."""

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
        self._by_pod: dict[str, Eviction] = {}
        """By the pod's uid."""

    def add(self, uid: str, eviction: Eviction) -> None:
        self._by_pod[uid] = eviction

    def __contains__(self, uid: str) -> bool:
        """Return whether the pod with a uid is evicted."""
        return uid in self._by_pod

    def find(self, pod: PodView, now: datetime) -> Eviction | None:
        """Return the eviction of a pod, which begins now if it uses more of the disk than it may; None if the pod stays."""
        present = self._by_pod.get(pod.uid)
        if present is not None or pod.is_terminal or pod.deleting:
            return present
        message = self._exceeded_limit(pod.object)
        if not message:
            return None
        eviction = self._by_pod[pod.uid] = Eviction(now, message)
        return eviction

    def _exceeded_limit(self, pod: ReadOnlyTree) -> str:
        if not has_disk_limits(pod) or is_critical(pod):
            return ""
        usage = self._runtime.disk_usage(pod)
        return "" if usage is None else exceeded_limit(pod, usage)

    def forget(self, uid: str) -> None:
        self._by_pod.pop(uid, None)

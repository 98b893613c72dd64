"""The pods that kubelets evict: because they use more of the disk than they may, or because their node lacks memory."""

from datetime import datetime

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.container_runtime.disk_usage import exceeded_limit, has_disk_limits
from mockube.container_runtime.records import Records
from mockube.container_runtime.runtime import ContainerRuntime

from .pod_lifecycle.eviction import Eviction
from .pod_lifecycle.preemption import is_critical


class Evictions:
    def __init__(self, records: Records, runtime: ContainerRuntime) -> None:
        self._records = records
        self._runtime = runtime

    def add(self, uid: str, eviction: Eviction) -> None:
        self._records.put(uid, eviction)

    def __contains__(self, uid: str) -> bool:
        """Return whether the pod with a uid is evicted."""
        return self._records.find(uid, Eviction) is not None

    def find(self, pod: PodView, now: datetime) -> Eviction | None:
        """Return the eviction of a pod, which begins now if it uses more of the disk than it may; None if the pod stays."""
        present = self._records.find(pod.uid, Eviction)
        if present is not None or pod.is_terminal or pod.deleting:
            return present
        message = self._exceeded_limit(pod.object)
        if not message:
            return None
        eviction = Eviction(now, message)
        self._records.put(pod.uid, eviction)
        return eviction

    def _exceeded_limit(self, pod: ReadOnlyTree) -> str:
        if not has_disk_limits(pod) or is_critical(pod):
            return ""
        usage = self._runtime.disk_usage(pod)
        return "" if usage is None else exceeded_limit(pod, usage)

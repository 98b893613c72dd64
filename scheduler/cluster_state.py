"""What a scheduler decides by: pending and nominated pods, nodes with their pods, storage, devices and workloads."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mockube.apimachinery import meta
from mockube.client.cache.informer import Informers
from mockube.client.kinds import NAMESPACES, PODS

from . import watched
from .cluster import ClusterSnapshot, SchedulerCache
from .nodeinfo import NodeInfo
from .nominator import Nominator
from .pending_pods import PendingPods
from .podinfo import PodInfo
from .profile import Profile
from .volumes import AssumedBindings, ClaimBinding

if TYPE_CHECKING:
    from .devices.state import DeviceState, OnChange


class ClusterState:
    """Follows nothing itself: the event handlers and the cycles keep its parts up to date."""

    def __init__(self, informers: Informers, profiles: Mapping[str, Profile]) -> None:
        self.gates = informers.caches.gates
        self.pending = PendingPods(informers.of(PODS).lister, profiles, self.gates)
        self.cache = SchedulerCache(self.gates)
        self.nominator = Nominator()
        self.devices: DeviceState | None = None
        self._assumed_bindings = AssumedBindings()
        self.storage = watched.storage_of(informers.caches, self._assumed_bindings)
        self._workloads = watched.workloads_of(informers.caches)
        self._namespaces = informers.of(NAMESPACES).lister
        self._informers = informers

    def track_devices(self, on_change: "OnChange") -> "DeviceState":
        """Return the state of devices, which follows the informers from the first call on: few clusters need it."""
        if self.devices is None:
            from .devices.state import DeviceState  # noqa: PLC0415 - few need it

            self.devices = DeviceState(self._informers, on_change, self.cache.mark_changed)
        return self.devices

    def snapshot(self, profile: Profile) -> ClusterSnapshot:
        cache = self.cache
        return ClusterSnapshot(
            nodes=cache.nodes() if profile.percentage_of_nodes_to_score is None else cache.nodes_in_turn(),
            labels_of_namespace=self._labels_of_namespace,
            storage=self.storage,
            devices=None if self.devices is None else self.devices.snapshot(),
            matching_counts=cache.matching_counts,
            users_of_claim=cache.users_of_claim,
            image_sizes=cache.image_sizes,
            topology_keys=cache.topology_keys,
            workloads=self._workloads,
            gates=self.gates,
            nominees=self.nominator.pods_on,
        )

    def assume(self, pod: PodInfo, node: NodeInfo, volumes: Sequence[ClaimBinding]) -> None:
        """Count a pod as running on its node with its volumes, before the server knows of it."""
        self.cache.assume_pod(pod, node.name)
        self.nominator.delete(pod.view.uid)  # it has its room now
        self._assumed_bindings.assume(pod.view.uid, node.name, volumes)

    def end_binding(self, pod: PodInfo) -> None:
        """Read the volumes of a pod from the caches again, whether they were bound or not."""
        self._assumed_bindings.forget(pod.view.uid)

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        namespace = self._namespaces.get("", name)
        return meta.labels(namespace) if namespace else {}

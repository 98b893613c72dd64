"""The state that one reconciliation of a CloneSet works on, read from the caches: pods, claims, revisions, nodes, the time."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_SPECIFIED_DELETE
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.controllers.kruise.cloneset import diffs, identity, storage
from mockube.controller_manager.controllers.kruise.cloneset.diffs import Diffs, Tally
from mockube.controller_manager.controllers.kruise.cloneset.spec import SetView
from mockube.controller_manager.workloads.inplace import lifecycle
from mockube.controller_manager.workloads.inplace.lifecycle import State
from mockube.controller_manager.workloads.inplace.update import is_in_service
from mockube.controller_manager.workloads.ownership import BY_OWNER, OwnedObjects, owned_objects
from mockube.controller_manager.workloads.revisions import in_order


class CloneSetState(Struct, frozen=True, kw_only=True):
    owner: SetView
    pods: tuple[PodView, ...]
    """Those that count as replicas."""
    inactive: tuple[PodView, ...]
    """Those that ended or are about to go, and still have their names."""
    claims: tuple[ReadOnlyTree, ...]
    """Its own pods, without those that are being deleted."""
    history: Sequence[ReadOnlyTree]
    current: ReadOnlyTree
    """The ControllerRevision that pods within the partition have."""
    update: ReadOnlyTree
    """The ControllerRevision of the template as it is now."""
    node_labels: Callable[[str], ReadOnlyTree]
    """The labels of a node by name; empty if it is unknown."""
    now: datetime

    @property
    def current_name(self) -> str:
        return meta.name(self.current)

    @property
    def update_name(self) -> str:
        return meta.name(self.update)

    def is_updated(self, pod: PodView) -> bool:
        return identity.has_revision(pod, self.update_name)

    def is_specified(self, pod: PodView) -> bool:
        """Whether a user has specified this pod for deletion."""
        return LABEL_SPECIFIED_DELETE in pod.labels or pod.key.name in self.owner.pods_to_delete

    def is_serving(self, pod: PodView) -> bool:
        """Whether it is ready, and no lifecycle transition is in progress."""
        return lifecycle.is_settled(pod) and is_in_service(pod, 0, self.now)

    def is_available(self, pod: PodView) -> bool:
        return lifecycle.is_settled(pod) and is_in_service(pod, self.owner.min_ready_seconds, self.now)

    def diffs(self) -> Diffs:
        new = [pod for pod in self.pods if self.is_updated(pod)]
        old = [pod for pod in self.pods if not self.is_updated(pod)]
        return diffs.diffs(self.owner.limits, self._tally(new), self._tally(old))

    def _tally(self, pods: Sequence[PodView]) -> Tally:
        staying = [pod for pod in pods if not is_preparing_delete(pod)]
        unnamed = [pod for pod in staying if not self.is_specified(pod)]
        return Tally(
            preparing_delete=len(pods) - len(staying),
            active=len(staying),
            to_delete=len(staying) - len(unnamed),
            unavailable=sum(not self.is_available(pod) for pod in unnamed),
        )


def is_preparing_delete(pod: PodView) -> bool:
    return lifecycle.state_of(pod) == State.PREPARING_DELETE


def pods(caches: Caches, owner: SetView) -> OwnedObjects[PodView]:
    """Return the pods of a set. It releases pods that it does not select any more and adopts none: a pod without an
    instance id is not its own.
    """
    owned_pods = owned_objects(caches, kinds.PODS, owner.object, owner.selector)
    return replace(owned_pods, orphans=(), strays=tuple(pod for pod in owned_pods.strays if pod.is_active))


def history(caches: Caches, owner: SetView) -> list[ReadOnlyTree]:
    return in_order(caches.of(kinds.CONTROLLER_REVISIONS).by_index(BY_OWNER, owner.uid))


def claims(caches: Caches, owner: SetView) -> tuple[ReadOnlyTree, ...]:
    owned_claims = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).by_index(BY_OWNER, owner.uid)
    return tuple(claim for claim in owned_claims if not meta.is_deleting(claim))


def in_use(claims_: Iterable[ReadOnlyTree], pods_: Iterable[PodView]) -> tuple[ReadOnlyTree, ...]:
    """Those of pods that count as replicas."""
    instances = {storage.instance_of(pod.object) for pod in pods_ if pod.is_active}
    return tuple(claim for claim in claims_ if storage.instance_of(claim) in instances)


def node_labels(caches: Caches, name: str) -> ReadOnlyTree:
    node = caches.of(kinds.NODES).get("", name)
    return {} if node is None else meta.labels(node)

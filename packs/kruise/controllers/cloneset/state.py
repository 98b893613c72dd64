"""The state that one reconciliation of a CloneSet reads from the caches: pods, claims, revisions and nodes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches
from mockube.client.podview import PodView
from mockube.controller_manager.workloads.ownership import BY_OWNER, OwnedObjects, owned_objects
from mockube.controller_manager.workloads.revisions import in_order
from mockube.packs.kruise.inplace import lifecycle
from mockube.packs.kruise.inplace.lifecycle import LifecycleState
from mockube.packs.kruise.inplace.update import is_in_service
from mockube.packs.kruise.kinds import LABEL_SPECIFIED_DELETE

from . import diffs, identity, storage
from .diffs import Diffs, PodCounts
from .spec import CloneSetView


class CloneSetState(Struct, frozen=True, kw_only=True):
    owner: CloneSetView
    pods: tuple[PodView, ...]
    """The pods that count as replicas."""
    inactive: tuple[PodView, ...]
    """The pods that ended or are being deleted; their names are still in use."""
    claims: tuple[ReadOnlyTree, ...]
    """The claims of its pods, without those that are being deleted."""
    history: Sequence[ReadOnlyTree]
    current: ReadOnlyTree
    """The ControllerRevision of the pods within the partition."""
    update: ReadOnlyTree
    """The ControllerRevision of the present template."""
    node_labels: Callable[[str], ReadOnlyTree]
    """Returns the labels of a node by its name; none if it is unknown."""
    now: datetime
    counts_prepared: bool
    """Whether scaling counts pods that are prepared for their update as updated."""

    @property
    def current_name(self) -> str:
        return meta.name(self.current)

    @property
    def update_name(self) -> str:
        return meta.name(self.update)

    def is_updated(self, pod: PodView) -> bool:
        return identity.has_revision(pod, self.update_name)

    def counts_as_updated(self, pod: PodView) -> bool:
        """Return whether scaling counts the pod as updated."""
        is_prepared = lifecycle.state_of(pod) == LifecycleState.PREPARING_UPDATE
        return self.is_updated(pod) or (self.counts_prepared and is_prepared)

    def is_specified(self, pod: PodView) -> bool:
        """Return whether a user specified the pod for deletion."""
        return LABEL_SPECIFIED_DELETE in pod.labels or pod.key.name in self.owner.pods_to_delete

    def is_serving(self, pod: PodView) -> bool:
        """Return whether the pod is ready, and no lifecycle transition is in progress."""
        return lifecycle.is_settled(pod) and is_in_service(pod, 0, self.now)

    def is_available(self, pod: PodView) -> bool:
        return lifecycle.is_settled(pod) and is_in_service(pod, self.owner.min_ready_seconds, self.now)

    def diffs(self, is_new: Callable[[PodView], bool]) -> Diffs:
        """Return the differences from the spec; `is_new` returns whether a pod counts as updated."""
        new = [pod for pod in self.pods if is_new(pod)]
        old = [pod for pod in self.pods if not is_new(pod)]
        return diffs.diffs(self.owner.limits, self._count_pods(new), self._count_pods(old))

    def _count_pods(self, pods: Sequence[PodView]) -> PodCounts:
        active = [pod for pod in pods if not is_preparing_delete(pod)]
        remaining = [pod for pod in active if not self.is_specified(pod)]
        return PodCounts(
            preparing_delete=len(pods) - len(active),
            active=len(active),
            to_delete=len(active) - len(remaining),
            unavailable=sum(not self.is_available(pod) for pod in remaining),
        )


def is_preparing_delete(pod: PodView) -> bool:
    return lifecycle.state_of(pod) == LifecycleState.PREPARING_DELETE


def pods(caches: Caches, owner: CloneSetView) -> OwnedObjects[PodView]:
    """Return the pods of a CloneSet. It releases pods that it no longer selects and adopts none: a pod without an
    instance id is not one of its pods.
    """
    owned_pods = owned_objects(caches, kinds.PODS, owner.object, owner.selector)
    return replace(
        owned_pods, orphans=(), to_release=tuple(pod for pod in owned_pods.to_release if pod.is_active)
    )


def history(caches: Caches, owner: CloneSetView) -> list[ReadOnlyTree]:
    return in_order(caches.of(kinds.CONTROLLER_REVISIONS).by_index(BY_OWNER, owner.uid))


def claims(caches: Caches, owner: CloneSetView) -> tuple[ReadOnlyTree, ...]:
    owned_claims = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).by_index(BY_OWNER, owner.uid)
    return tuple(claim for claim in owned_claims if not meta.is_deleting(claim))


def in_use(claims_: Iterable[ReadOnlyTree], pods_: Iterable[PodView]) -> tuple[ReadOnlyTree, ...]:
    """Return the claims of pods that count as replicas."""
    instances = {storage.instance_of(pod.object) for pod in pods_ if pod.is_active}
    return tuple(claim for claim in claims_ if storage.instance_of(claim) in instances)


def node_labels(caches: Caches, name: str) -> ReadOnlyTree:
    node = caches.of(kinds.NODES).get("", name)
    return {} if node is None else meta.labels(node)

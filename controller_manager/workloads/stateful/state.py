"""The state of a StatefulSet for one reconciliation, from the caches: pods by ordinal, claims, revisions, the time."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches
from mockube.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.ownership import OwnedObjects, owned_objects
from mockube.controller_manager.workloads.pod_steps import NO_STEP, PodStep

from . import identity, storage
from .spec import SetView
from .storage import Claims


class PodHandling(Protocol):
    """The differences of a kind of sets in the handling of its pods."""

    def is_settled(self, pod: PodView, /) -> bool:
        """Return whether no transition is in progress, so that the pod is available once it is ready for long enough."""

    def is_prepared(self, pod: PodView, /) -> bool:
        """Return whether the pod is unavailable because it is prepared for an update."""

    def new_pod_body(self, pod: ReadOnlyTree, /) -> ReadOnlyTree:
        """Return the body of a new pod."""

    def observe_pod(self, pod: PodView, /) -> PodStep:
        """Return the step of a pod that does not depend on the set's rollout."""

    def hold_patches(self, pod: PodView, /) -> tuple[Patch, ...] | None:
        """Return the patches in place of the deletion of a pod that a hook holds; None if none does."""


class DefaultPodHandling:
    """The handling of pods without lifecycle hooks and in-place updates."""

    def is_settled(self, _: PodView) -> bool:
        return True

    def is_prepared(self, _: PodView) -> bool:
        return False

    def new_pod_body(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        return pod

    def observe_pod(self, _: PodView) -> PodStep:
        return NO_STEP

    def hold_patches(self, _: PodView) -> tuple[Patch, ...] | None:
        return None


MAX_MISSING_PODS: Final = 500
"""The maximum number of ordinals without a pod in one reconciliation; the new pods cause the next one."""


class Slot(Struct, frozen=True, kw_only=True):
    """A desired ordinal, and its pod, which is None before it is created and after it is deleted."""

    ordinal: int
    pod: PodView | None


class StatefulSetState(Struct, frozen=True, kw_only=True):
    """The observed state of a set."""

    owner: SetView
    pod_handling: PodHandling
    slots: tuple[Slot, ...]
    """The slots in order, up to the one with which `MAX_MISSING_PODS` have no pod."""
    condemned: tuple[PodView, ...]
    """The pods whose ordinals are no longer desired, the highest first."""
    owned: Collection[PodView]
    """All pods of the set, also those of slots that follow the last one."""
    claims: Claims
    history: Sequence[ReadOnlyTree]
    """The existing ControllerRevisions, the oldest first."""
    current: ReadOnlyTree
    """The ControllerRevision of pods below the partition."""
    update: ReadOnlyTree
    """The ControllerRevision of the current template."""
    current_ordinals: Collection[int]
    """The ordinals whose new pods get the current revision."""
    gates: FeatureGates
    now: datetime

    @property
    def pods(self) -> list[PodView]:
        return [slot.pod for slot in self.slots if slot.pod is not None] + [*self.condemned]

    @property
    def has_all_slots(self) -> bool:
        return len(self.slots) == len(self.owner.ordinals)

    @property
    def current_name(self) -> str:
        return meta.name(self.current)

    @property
    def update_name(self) -> str:
        return meta.name(self.update)

    def is_available(self, pod: PodView) -> bool:
        is_ready = pod.phase == RUNNING and pod.is_available(self.owner.min_ready_seconds, self.now)
        return is_ready and self.pod_handling.is_settled(pod)

    def is_unavailable(self, pod: PodView | None) -> bool:
        return pod is None or pod.deleting or not self.is_available(pod)

    def is_outdated(self, pod: PodView | None) -> bool:
        """Return whether the update has to replace the pod: it has another revision and is not being deleted."""
        return pod is not None and not pod.deleting and identity.revision_of(pod) != self.update_name

    def revision_for(self, ordinal: int) -> ReadOnlyTree:
        """Return the ControllerRevision of a new pod."""
        return self.current if ordinal in self.current_ordinals else self.update


def by_ordinal(owner: SetView, pods: Iterable[PodView]) -> tuple[tuple[Slot, ...], tuple[PodView, ...]]:
    """Return the slots in order, and the condemned pods."""
    pods_by_ordinal = {identity.ordinal_in(owner, pod.key.name): pod for pod in pods}
    slots: list[Slot] = []
    missing = 0
    for ordinal in owner.ordinals:
        pod = pods_by_ordinal.get(ordinal)
        slots.append(Slot(ordinal=ordinal, pod=pod))
        missing += pod is None
        if missing == MAX_MISSING_PODS:
            break
    condemned_ordinals = sorted(
        (ordinal for ordinal in pods_by_ordinal if ordinal is not None and ordinal not in owner.ordinals),
        reverse=True,
    )
    return tuple(slots), tuple(pods_by_ordinal[ordinal] for ordinal in condemned_ordinals)


def pods(caches: Caches, owner: SetView) -> OwnedObjects[PodView]:
    """Return the pods of a set. Pods that do not have one of its names are released, and not adopted."""
    owned_pods = owned_objects(caches, kinds.PODS, owner.object, owner.selector)
    misnamed = tuple(pod for pod in owned_pods.owned if not _is_named_by(owner, pod))
    return OwnedObjects(
        owned=tuple(pod for pod in owned_pods.owned if pod not in misnamed),
        orphans=tuple(pod for pod in owned_pods.orphans if _is_named_by(owner, pod)),
        to_release=owned_pods.to_release if owner.deleting else (*owned_pods.to_release, *misnamed),
    )


def _is_named_by(owner: SetView, pod: PodView) -> bool:
    return identity.ordinal_in(owner, pod.key.name) is not None


def revisions(caches: Caches, owner: SetView) -> OwnedObjects[ReadOnlyTree]:
    """Return the revisions of a set. Owned ones are never released, whatever their labels are."""
    owned_revisions = owned_objects(caches, kinds.CONTROLLER_REVISIONS, owner.object, owner.selector)
    return replace(
        owned_revisions, owned=(*owned_revisions.owned, *owned_revisions.to_release), to_release=()
    )


def claims(caches: Caches, owner: SetView, ordinals: Iterable[int]) -> storage.Claims:
    lister = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS)
    names = (name for ordinal in ordinals for name in storage.claim_names(owner, ordinal))
    named_claims = ((name, lister.get(owner.key.namespace, name)) for name in names)
    return {name: claim for name, claim in named_claims if claim is not None}

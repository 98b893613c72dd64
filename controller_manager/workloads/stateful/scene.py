"""What one round of a StatefulSet is decided on: the set, its pods by ordinal, its claims, its two revisions, the time."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import RUNNING, PodView
from controller_manager.workloads.stateful import identity
from controller_manager.workloads.stateful.customs import Customs
from controller_manager.workloads.stateful.setview import SetView
from controller_manager.workloads.stateful.storage import Claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """An ordinal that should have a pod; it has none before that is made, and after it is gone."""

    ordinal: int
    pod: PodView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    owner: SetView
    customs: Customs
    slots: tuple[Slot, ...]
    condemned: tuple[PodView, ...]
    """Pods whose ordinals are not wanted, the highest first."""
    claims: Claims
    history: Sequence[Tree]
    """The ControllerRevisions that there are, the oldest first."""
    current: Tree
    """The ControllerRevision that pods below the partition have."""
    update: Tree
    """The ControllerRevision of the template as it is now."""
    kept: Collection[int]
    """The ordinals whose new pods are made of the current revision."""
    now: datetime

    @property
    def pods(self) -> list[PodView]:
        return [slot.pod for slot in self.slots if slot.pod is not None] + [*self.condemned]

    @property
    def current_name(self) -> str:
        return meta.name(self.current)

    @property
    def update_name(self) -> str:
        return meta.name(self.update)

    def is_available(self, pod: PodView) -> bool:
        is_ready = pod.phase == RUNNING and pod.is_available(self.owner.min_ready_seconds, self.now)
        return is_ready and self.customs.is_settled(pod)

    def is_unavailable(self, pod: PodView | None) -> bool:
        return pod is None or pod.deleting or not self.is_available(pod)

    def is_outdated(self, pod: PodView | None) -> bool:
        """It will have to be replaced for the update; one that is going already will not."""
        return pod is not None and not pod.deleting and identity.revision_of(pod) != self.update_name

    def revision_for(self, ordinal: int) -> Tree:
        """What a new pod is made from."""
        return self.current if ordinal in self.kept else self.update


def by_ordinal(owner: SetView, pods: Iterable[PodView]) -> tuple[tuple[Slot, ...], tuple[PodView, ...]]:
    """The slots in order, and the condemned."""
    ordinals = {identity.ordinal_in(owner, pod.key.name): pod for pod in pods}
    slots = tuple(Slot(ordinal=ordinal, pod=ordinals.get(ordinal)) for ordinal in owner.ordinals)
    beyond = sorted((it for it in ordinals if it is not None and it not in owner.ordinals), reverse=True)
    return slots, tuple(ordinals[ordinal] for ordinal in beyond)

"""What one round of a CloneSet is decided on: the set, its pods, its claims, its revisions, the time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from apimachinery import meta
from apimachinery.wellknown import LABEL_SPECIFIED_DELETE
from controller_manager.controllers.cloneset import diffs, identity
from controller_manager.controllers.cloneset.diffs import Diffs, Tally
from controller_manager.controllers.cloneset.setview import SetView
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.inplace import lifecycle
from controller_manager.workloads.inplace.lifecycle import State
from controller_manager.workloads.inplace.update import is_in_service
from controller_manager.workloads.podview import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    owner: SetView
    pods: tuple[PodView, ...]
    """Those that count as replicas."""
    inactive: tuple[PodView, ...]
    """Those that ended or are about to go, and still have their names."""
    claims: tuple[Tree, ...]
    """Its own, but those that are about to go."""
    history: Sequence[Tree]
    current: Tree
    """The ControllerRevision that pods within the partition have."""
    update: Tree
    """The ControllerRevision of the template as it is now."""
    node_labels: Callable[[str], Tree]
    """Of a node by its name; empty if nobody knows it."""
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
        """Somebody wants this very pod to be deleted."""
        return LABEL_SPECIFIED_DELETE in pod.labels or pod.key.name in self.owner.pods_to_delete

    def is_serving(self, pod: PodView) -> bool:
        """Ready, and nobody prepares anything with it."""
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

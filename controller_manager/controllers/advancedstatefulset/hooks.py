"""The pods of an advanced set through their lives: the states that a label tells, and the hooks that hold them."""

from dataclasses import dataclass
from datetime import datetime

from apimachinery import meta
from controller_manager.runtime.actions import Patch
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.inplace import lifecycle, moves, readiness, turn
from controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from controller_manager.workloads.inplace.update import Step
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    lifecycle: Lifecycle
    newest: str
    """The name of the newest revision."""
    now: datetime

    def is_settled(self, pod: PodView) -> bool:
        return lifecycle.is_settled(pod)

    def is_prepared(self, pod: PodView) -> bool:
        return lifecycle.state_of(pod) in (State.PREPARING_UPDATE, State.UPDATED)

    def born(self, pod: Tree) -> Tree:
        before = self.lifecycle.pre_normal
        is_normal = before is None or before.holds_wholly(PodView.of(pod))
        state = State.NORMAL if is_normal else State.PREPARING_NORMAL
        labelled = meta.with_labels(pod, lifecycle.labels_of(state))
        dated = meta.with_annotations(labelled, lifecycle.annotations_of(self.now))
        return readiness.with_gate(dated, self.lifecycle)

    def tended(self, pod: PodView) -> Step:
        revision = identity.revision_of(pod)
        return turn.tended(pod, self.lifecycle, self.now, revision=revision, wanted=self.newest)

    def held(self, pod: PodView) -> tuple[Patch, ...] | None:
        before = self.lifecycle.pre_delete
        if before is None or not before.holds(pod):
            return None
        return moves.move(pod, State.PREPARING_DELETE, self.lifecycle, self.now)

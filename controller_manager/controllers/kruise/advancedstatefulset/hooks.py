"""The lifecycle of an advanced set's pods: the states in a label, and the hooks that hold them."""

from datetime import datetime

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, update
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from mockube.controller_manager.workloads.inplace.update import Step
from mockube.controller_manager.workloads.stateful import identity


class Hooks(Struct, frozen=True, kw_only=True):
    lifecycle: Lifecycle
    newest: str
    """The name of the newest revision."""
    now: datetime

    def is_settled(self, pod: PodView) -> bool:
        return lifecycle.is_settled(pod)

    def is_prepared(self, pod: PodView) -> bool:
        return lifecycle.state_of(pod) in (State.PREPARING_UPDATE, State.UPDATED)

    def new_pod_body(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        before = self.lifecycle.pre_normal
        is_normal = before is None or before.has_all_hooks(PodView.of(pod))
        state = State.NORMAL if is_normal else State.PREPARING_NORMAL
        labelled = meta.with_labels(pod, lifecycle.labels_of(state))
        dated = meta.with_annotations(labelled, lifecycle.annotations_of(self.now))
        return readiness.with_readiness_gate(dated, self.lifecycle)

    def observe_pod(self, pod: PodView) -> Step:
        revision = identity.revision_of(pod)
        return update.observe_pod(
            pod, self.lifecycle, self.now, revision=revision, desired_revision=self.newest
        )

    def hold_patches(self, pod: PodView) -> tuple[Patch, ...] | None:
        before = self.lifecycle.pre_delete
        if before is None or not before.holds(pod):
            return None
        return readiness.move(pod, State.PREPARING_DELETE, self.lifecycle, self.now)

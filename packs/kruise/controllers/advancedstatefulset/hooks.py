"""The lifecycle hooks of an Advanced StatefulSet's pods."""

from datetime import datetime

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.pod_steps import PodStep
from mockube.controller_manager.workloads.stateful import identity
from mockube.packs.kruise.inplace import lifecycle, readiness, update
from mockube.packs.kruise.inplace.lifecycle import Lifecycle, LifecycleState


class LifecycleHooks(Struct, frozen=True, kw_only=True):
    """How the pods of an Advanced StatefulSet move between lifecycle states; it implements `PodHandling`."""

    lifecycle: Lifecycle
    newest: str
    """The name of the newest revision."""
    now: datetime

    def is_settled(self, pod: PodView) -> bool:
        return lifecycle.is_settled(pod)

    def is_prepared(self, pod: PodView) -> bool:
        return lifecycle.state_of(pod) in (LifecycleState.PREPARING_UPDATE, LifecycleState.UPDATED)

    def new_pod_body(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        hook = self.lifecycle.pre_normal
        is_normal = hook is None or hook.has_all_hooks(PodView.of(pod))
        state = LifecycleState.NORMAL if is_normal else LifecycleState.PREPARING_NORMAL
        labelled = meta.with_labels(pod, lifecycle.labels_of(state))
        annotated = meta.with_annotations(labelled, lifecycle.annotations_of(self.now))
        return readiness.with_readiness_gate(annotated, self.lifecycle)

    def observe_pod(self, pod: PodView) -> PodStep:
        revision = identity.revision_of(pod)
        return update.observe_pod(
            pod, self.lifecycle, self.now, revision=revision, desired_revision=self.newest
        )

    def hold_patches(self, pod: PodView) -> tuple[Patch, ...] | None:
        hook = self.lifecycle.pre_delete
        if hook is None or not hook.holds(pod):
            return None
        return readiness.move_to_state(pod, LifecycleState.PREPARING_DELETE, self.lifecycle, self.now)

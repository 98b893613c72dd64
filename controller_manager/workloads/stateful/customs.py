"""What a kind of sets does with its pods beside creating and deleting them."""

from typing import Protocol

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.inplace.update import NO_STEP, Step


class Customs(Protocol):
    def is_settled(self, pod: PodView, /) -> bool:
        """Whether no transition is in progress, so that the pod is available once it is ready for long enough."""

    def is_prepared(self, pod: PodView, /) -> bool:
        """Whether it is unavailable because it is about to be updated."""

    def new_pod_body(self, pod: ReadOnlyTree, /) -> ReadOnlyTree:
        """Return the body of a new pod."""

    def observe_pod(self, pod: PodView, /) -> Step:
        """Return the step of a pod that does not depend on the set's rollout."""

    def hold_patches(self, pod: PodView, /) -> tuple[Patch, ...] | None:
        """Return the patches in place of the deletion of a pod that a hook holds; None if none does."""


class NoCustoms:
    def is_settled(self, _: PodView) -> bool:
        return True

    def is_prepared(self, _: PodView) -> bool:
        return False

    def new_pod_body(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        return pod

    def observe_pod(self, _: PodView) -> Step:
        return NO_STEP

    def hold_patches(self, _: PodView) -> tuple[Patch, ...] | None:
        return None

"""What a kind of sets does with its pods beside making and deleting them."""

from typing import Protocol

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.inplace.update import NO_STEP, Step


class Customs(Protocol):
    def is_settled(self, pod: PodView, /) -> bool:
        """Nobody prepares anything with it, so that it is available once it is ready for long enough."""

    def is_prepared(self, pod: PodView, /) -> bool:
        """It is not available because it is about to be updated."""

    def born(self, pod: ReadOnlyTree, /) -> ReadOnlyTree:
        """A new pod as it is made."""

    def tended(self, pod: PodView, /) -> Step:
        """What is done about a pod as it is, wherever the set stands."""

    def hold_patches(self, pod: PodView, /) -> tuple[Patch, ...] | None:
        """What is done instead of deleting a pod that somebody holds; None if nobody does."""


class NoCustoms:
    def is_settled(self, _: PodView) -> bool:
        return True

    def is_prepared(self, _: PodView) -> bool:
        return False

    def born(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        return pod

    def tended(self, _: PodView) -> Step:
        return NO_STEP

    def hold_patches(self, _: PodView) -> tuple[Patch, ...] | None:
        return None

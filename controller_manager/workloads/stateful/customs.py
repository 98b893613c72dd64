"""What a kind of sets does with its pods beside making and deleting them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from controller_manager.runtime.actions import Patch
from controller_manager.workloads.podview import PodView


class Tended(NamedTuple):
    """What is done about a pod as it is, wherever the set stands."""

    patches: tuple[Patch, ...] = ()
    again_after: timedelta | None = None


class Customs(Protocol):
    def is_settled(self, pod: PodView) -> bool:
        """Nobody prepares anything with it, so that it is available once it is ready for long enough."""

    def born(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """A new pod as it is made."""

    def tended(self, pod: PodView) -> Tended: ...

    def held(self, pod: PodView) -> tuple[Patch, ...] | None:
        """What is done instead of deleting a pod that somebody holds; None if nobody does."""


class NoCustoms:
    def is_settled(self, _: PodView) -> bool:
        return True

    def born(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        return pod

    def tended(self, _: PodView) -> Tended:
        return Tended()

    def held(self, _: PodView) -> tuple[Patch, ...] | None:
        return None

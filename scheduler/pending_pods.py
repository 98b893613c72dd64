"""The pods that the scheduler has to schedule, by the informer's cache, and the profile of each."""

from collections.abc import Collection, Mapping

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import MALFORMED_OBJECT_ERRORS
from mockube.client.cache.store import Lister
from mockube.client.podview import PodView
from mockube.client.resources import Key

from . import pods, requeueing
from .profile import Profile
from .requeueing import ClusterEvent


class PendingPods:
    def __init__(self, lister: Lister[PodView], profiles: Mapping[str, Profile], gates: FeatureGates) -> None:
        self._lister = lister
        self._profiles = profiles
        self._gates = gates

    def latest(self, key: Key) -> PodView | None:
        """Return the pod of a key, whether it has to be scheduled or not."""
        return self._lister.get(*key)

    def find(self, key: Key) -> PodView | None:
        """Return the pod of a key if it has to be scheduled."""
        view = self.latest(key)
        return view if view is not None and self.contains(view) else None

    def contains(self, view: PodView) -> bool:
        """Return whether the pod, as it is here, has to be scheduled."""
        return pods.should_schedule(view, self._profiles)

    def still_contains(self, view: PodView) -> bool:
        """Return whether a pod still has to be scheduled, after something was awaited."""
        latest = self.find(view.key)
        return latest is not None and latest.uid == view.uid

    def is_affected(self, old: PodView, new: PodView) -> bool:
        """Return whether a change of a pod affects scheduling."""
        return pods.pod_change_affects_scheduling(old, new, self._profiles)

    def profile_of(self, view: PodView) -> Profile:
        return self._profiles[pods.scheduler_name(view)]

    def profile_name(self, key: Key) -> str:
        view = self.latest(key)
        return pods.DEFAULT_SCHEDULER if view is None else pods.scheduler_name(view)

    def is_worth_requeuing(self, key: Key, plugins: Collection[str], event: ClusterEvent) -> bool:
        """Return whether an event may make a pod schedulable that these plugins rejected."""
        view = self.latest(key)
        try:
            return view is None or requeueing.is_worth_requeuing(
                view, plugins, event, self._gates, self.profile_of(view).without_hints
            )
        except MALFORMED_OBJECT_ERRORS:  # among them the KeyError of a profile that does not exist
            return True

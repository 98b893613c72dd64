"""The decision on one pod: by its class, by the reference that judges every node, or by plugins and extenders together."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .choice import (
    FeasibleNodes,
    best_nodes,
    find_all_feasible,
    find_feasible,
    find_nominated,
)
from .cluster import ClusterSnapshot, SchedulerCache
from .monitor import SchedulerMonitor
from .nodeinfo import NodeInfo
from .plugin_failure import PluginFailure
from .pod_class import PodClasses
from .podinfo import PodInfo
from .pods import nominated_node
from .profile import Profile
from .sampling import NodeSample, NodeSampler

if TYPE_CHECKING:
    from .extenders.chain import Extenders

LOG: Final = logging.getLogger(__name__)
Decision = tuple[Sequence[NodeInfo], FeasibleNodes]
"""The best nodes; if there are none, why no node is feasible."""


class SchedulingAlgorithm:
    """Only extenders make it wait: without them, a decision is complete before anything else runs."""

    def __init__(
        self, cluster: SchedulerCache, monitor: SchedulerMonitor, extenders: "Extenders | None"
    ) -> None:
        self._monitor = monitor
        self._extenders = extenders
        self._classes = PodClasses(cluster)
        self._sampler = NodeSampler()

    def forget_classes(self) -> None:
        """Judge nodes anew, because something changed that classes of pods do not follow."""
        self._classes.forget()

    async def decide(
        self, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile, *, leaves_room: bool
    ) -> Decision:
        """Return the best nodes for a pod. It `leaves_room` if pods are nominated for nodes that it may not take."""
        sample = self._sampler.sample(profile.percentage_of_nodes_to_score, len(snapshot.nodes))
        began = self._monitor.monotonic()
        try:
            if self._extenders is not None and self._extenders.concerns(pod):
                return await self._decide_with(self._extenders, pod, snapshot, profile, sample)
            pod_class = None if leaves_room else self._classes.find(pod, snapshot, profile)
            if pod_class is None:
                return self._by_reference(pod, snapshot, profile, sample)
            groups = pod_class.feasible_groups(snapshot, sample)
            self._record("Filter", began, profile, success=bool(groups))
            if not groups:
                return (), pod_class.feasible_nodes(snapshot)
            scoring_began = self._monitor.monotonic()
            best = pod_class.best_nodes(groups, snapshot)
            self._record("Score", scoring_began, profile)
            return best, FeasibleNodes(best)
        except PluginFailure as failure:
            return (), FeasibleNodes.of_error(failure)
        finally:
            self._sampler.take(sample, len(snapshot.nodes))

    def _by_reference(
        self, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile, sample: NodeSample | None
    ) -> Decision:
        began = self._monitor.monotonic()
        found = find_feasible(pod, snapshot, profile, sample)
        self._record("Filter", began, profile, success=bool(found.feasible))
        if not found.feasible:
            return (), found
        scoring_began = self._monitor.monotonic()
        best = best_nodes(pod, snapshot, found.feasible, profile)
        self._record("Score", scoring_began, profile)
        return best, found

    async def _decide_with(
        self,
        extenders: "Extenders",
        pod: PodInfo,
        snapshot: ClusterSnapshot,
        profile: Profile,
        sample: NodeSample | None,
    ) -> Decision:
        """Judge every node, because extenders may tell nodes apart that are alike to plugins."""
        found = await self._feasible_for_all(extenders, pod, snapshot, profile, sample)
        if not found.feasible:
            return (), found
        nodes, known = found.feasible, {node.name: node for node in snapshot.nodes}
        if snapshot.gates.is_before("1.33"):  # Scores are those of the nodes in the cache.
            nodes = [known.get(node.name, node) for node in nodes]
        if len(nodes) > 1:
            began = self._monitor.monotonic()
            scores = await extenders.scores(pod, nodes)
            nodes = best_nodes(pod, snapshot, nodes, profile, scores)
            self._record("Score", began, profile)
        return [known.get(node.name, node) for node in nodes], found

    async def _feasible_for_all(
        self,
        extenders: "Extenders",
        pod: PodInfo,
        snapshot: ClusterSnapshot,
        profile: Profile,
        sample: NodeSample | None,
    ) -> FeasibleNodes:
        """Return the nodes that plugins and extenders accept; only the nominated one if they accept it."""
        if nominated_node(pod.view.object):
            found = find_nominated(pod, snapshot, profile)
            try:
                found = await extenders.filter(pod, found, snapshot) if found.feasible else found
            except PluginFailure as error:
                LOG.warning("scheduler: %s: evaluating the nominated node failed: %s", pod.view.key, error)
            else:
                if found.feasible:
                    return found
        began = self._monitor.monotonic()
        found = find_all_feasible(pod, snapshot, profile, sample)
        self._record("Filter", began, profile, success=bool(found.feasible))
        return await extenders.filter(pod, found, snapshot) if found.feasible else found

    def _record(self, point: str, began: float, profile: Profile, *, success: bool = True) -> None:
        self._monitor.record_extension_point(point, began, profile.name, success=success)

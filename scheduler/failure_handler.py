"""Handle that no node is feasible for a pod: preempt others, release claims, and report why.

What follows from the state of the cluster is in failure.py. Upstream: handleSchedulingFailure in schedule_one.go.
"""

from typing import TYPE_CHECKING

from mockube.apimachinery.randomness import fraction
from mockube.client.component import ComponentContext
from mockube.client.kinds import POD_DISRUPTION_BUDGETS

from .choice import FeasibleNodes
from .cluster import ClusterSnapshot
from .cluster_state import ClusterState
from .failure import SchedulingFailure, failure_of, may_preempt
from .monitor import SchedulerMonitor
from .podinfo import PodInfo
from .preemption import Preemption, find_candidates
from .preemption_executor import PreemptionExecutor
from .profile import Profile
from .reporting import PodReporter

if TYPE_CHECKING:
    from .extenders.chain import Extenders


class FailureHandler:
    def __init__(
        self,
        context: ComponentContext,
        state: ClusterState,
        preemptions: PreemptionExecutor,
        extenders: "Extenders | None",
        reporter: PodReporter,
        monitor: SchedulerMonitor,
    ) -> None:
        self._client = context.client
        self._random = context.random
        self._budgets = context.informers.of(POD_DISRUPTION_BUDGETS).lister
        self._state = state
        self._preemptions = preemptions
        self._extenders = extenders
        self._reporter = reporter
        self._monitor = monitor

    async def handle(
        self, pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile
    ) -> None:
        """Preempt pods of lower priority if that helps, and report in an Event and the status why no node is feasible."""
        preemption = await self._find_preemption(pod, snapshot, feasible_nodes, profile)
        if not self._state.pending.still_contains(pod.view):
            return
        failure = failure_of(pod, snapshot, feasible_nodes, preemption, profile)
        candidate = failure.candidate
        if not feasible_nodes.is_error:
            self._monitor.record_preemption(len(candidate.victims) if candidate else 0)
        nominee = None if failure.keeps_nomination else ""
        if candidate is not None:
            nominee = candidate.node
            displaced = self._state.nominator.nominate_in_place_of_lower(pod, candidate.node)
            self._preemptions.preempt(pod, candidate, displaced)
        elif not failure.keeps_nomination:
            self._state.nominator.delete(pod.view.uid)
        await self._release_claims(failure)
        reason = "SchedulerError" if feasible_nodes.is_error else "Unschedulable"
        await self._reporter.report_failure(pod.view, failure, nominee, reason)

    async def _find_preemption(
        self, pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile
    ) -> Preemption:
        """Return the candidates of a preemption that extenders accept, if it is tried at all."""
        if not may_preempt(snapshot, feasible_nodes, profile):
            return Preemption()
        offset = fraction(self._random) if profile.limits_candidates else 0.0
        preemption = find_candidates(pod, snapshot, feasible_nodes, self._budgets.all(), profile, offset)
        if self._extenders is None or not preemption.candidates:
            return preemption
        return await self._extenders.process_preemption(pod, preemption, snapshot)

    async def _release_claims(self, failure: SchedulingFailure) -> None:
        """Deallocate or delete the claim that prevents a pod from running."""
        if failure.unused_claim is None and failure.stale_claim is None:
            return
        from .device_binder import deallocate_claim, delete_claim  # noqa: PLC0415 - few need it

        if failure.unused_claim is not None:
            await deallocate_claim(self._client, failure.unused_claim)
        elif failure.stale_claim is not None:
            await delete_claim(self._client, failure.stale_claim)

"""All extenders of the scheduler, in the order in which they are called. Upstream: schedule_one.go, framework/preemption."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.component_base.supervision import start_in
from mockube.scheduler.choice import EXTENDER, FeasibleNodes
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.extender_access import ExtenderAccess
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.preemption import NO_CANDIDATE, Preemption

from .extender import HTTPExtender
from .messages import ExtenderError

LOG: Final = logging.getLogger(__name__)
_WITHOUT_REASON: Final = Rejection((), is_unresolvable=True, plugin=EXTENDER)


class Extenders:
    """The extenders that are not ignorable are called before the others."""

    def __init__(self, configurations: Iterable[ExtenderAccess]) -> None:
        all_extenders = [HTTPExtender(configuration) for configuration in configurations]
        self._extenders = sorted(all_extenders, key=lambda extender: extender.is_ignorable)

    def concerns(self, pod: PodInfo) -> bool:
        """Return whether an extender filters or scores nodes for a pod."""
        return any(
            (extender.filters or extender.prioritizes) and extender.is_interested(pod)
            for extender in self._extenders
        )

    async def filter(self, pod: PodInfo, found: FeasibleNodes, snapshot: ClusterSnapshot) -> FeasibleNodes:
        """Return the nodes that all extenders accept, one extender after the other. Raises ExtenderError.

        If none is left, every node has a rejection: one that an extender does not mention has no reason.
        """
        nodes, rejections = found.feasible, dict(found.rejections)
        for extender in self._extenders:
            if nodes and extender.filters and extender.is_interested(pod):
                try:
                    nodes, others = await extender.filter(pod, nodes)
                    rejections |= others
                except ExtenderError as error:
                    self._ignore(extender, error)
        if not nodes:
            rejections = {node.name: _WITHOUT_REASON for node in snapshot.nodes} | rejections
        return FeasibleNodes(nodes, rejections)

    async def scores(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Return the sums of the weighted scores of all extenders by the names of nodes. One that fails gives none."""
        totals: Counter[str] = Counter()

        async def add(extender: HTTPExtender) -> None:
            try:
                totals.update(await extender.scores(pod, nodes))
            except ExtenderError as error:
                LOG.info("scheduler: %s: no scores of extender %s: %s", pod.view.key, extender.name, error)

        async with asyncio.TaskGroup() as group:
            for extender in self._extenders:
                if extender.prioritizes and extender.is_interested(pod):
                    start_in(group, f"scheduler/extender {extender.name}", add(extender))
        return totals

    async def process_preemption(
        self, pod: PodInfo, preemption: Preemption, snapshot: ClusterSnapshot
    ) -> Preemption:
        """Return the candidates that all extenders accept, with the victims that they choose."""
        candidates = preemption.candidates
        try:
            for extender in self._extenders:
                if candidates and extender.preempts and extender.is_interested(pod):
                    try:
                        candidates = await extender.process_preemption(pod, candidates, snapshot)
                    except ExtenderError as error:
                        self._ignore(extender, error)
        except ExtenderError as error:
            return Preemption.failed(error)
        if not candidates:
            return Preemption(problem=NO_CANDIDATE, keeps_nomination=True)
        return Preemption(candidates=candidates)

    def has_binder(self, pod: PodInfo) -> bool:
        return any(extender.binds and extender.is_interested(pod) for extender in self._extenders)

    async def bind(self, pod: PodInfo, node: str) -> bool:
        """Let the extender bind a pod that does so; return whether one has. Raises ExtenderError."""
        for extender in self._extenders:
            if extender.binds and extender.is_interested(pod):
                try:
                    await extender.bind(pod, node)
                except ExtenderError as error:
                    self._ignore(extender, error)
                else:
                    return True
        return False

    async def close(self) -> None:
        for extender in self._extenders:
            await extender.close()

    @staticmethod
    def _ignore(extender: HTTPExtender, error: ExtenderError) -> None:
        """Go on without an extender that is ignorable; raise the error of any other."""
        if not extender.is_ignorable:
            raise error
        LOG.info("scheduler: skipping ignorable extender %s: %s", extender.name, error)

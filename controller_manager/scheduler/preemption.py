"""Which pods of lower priority would have to go so that a pod fits, and on which node that costs least. Pure.

Upstream: framework/preemption and plugins/defaultpreemption.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_DISRUPTION_TARGET
from mockube.controller_manager.scheduler.choice import FeasibleNodes, find_feasible, fit_error_message
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.profile import nominated_node

LOG: Final = logging.getLogger(__name__)
PREEMPTED: Final = "PreemptionByScheduler"
"""The reason of the condition DisruptionTarget of a victim."""
_NO_VICTIMS: Final = Refusal(("No preemption victims found for incoming pod",))
_NO_HELP: Final = Refusal(("Preemption is not helpful for scheduling",))
_NEVER: Final = "not eligible due to preemptionPolicy=Never."
_WAITING: Final = "not eligible due to a terminating pod on the nominated node."
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class Candidate(Struct, frozen=True, kw_only=True):
    node: str
    victims: Sequence[PodInfo]
    """The most important first."""
    violations: int
    """How many of them a disruption budget protects."""


class _Budget(Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    namespace: str
    selector: Selector
    disrupted: Container[str]
    disruptions_allowed: int

    def covers(self, pod: PodInfo) -> bool:
        if self.namespace != pod.view.key.namespace or not pod.view.labels:
            return False
        return pod.view.key.name not in self.disrupted and self.selector.matches(pod.view.labels)


def _budgets(trees: Iterable[ReadOnlyTree]) -> Iterator[_Budget]:
    """Those that cover pods at all. As upstream's, one that cannot be read covers none, and is no reason to fail."""
    for tree in trees:
        try:
            status = tree.get("status") or {}
            budget = _Budget(
                namespace=meta.namespace(tree),
                selector=from_label_selector(tree["spec"].get("selector")),
                disrupted=frozenset(status.get("disruptedPods") or ()),
                disruptions_allowed=int(status.get("disruptionsAllowed", 0)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            LOG.debug("a disruption budget cannot be read: %s", error)
            continue
        if not budget.selector.empty:
            yield budget


def preempt(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, budgets: Sequence[ReadOnlyTree]
) -> Candidate | str:
    """Where to make room, or why that is no use."""
    refused = _ineligible(pod, snapshot, feasible_nodes)
    if refused:
        return refused
    outcomes: dict[str, Candidate | Refusal] = {}
    readable = [*_budgets(budgets)]
    for node in snapshot.nodes:
        refusal = feasible_nodes.refusals.get(node.name)
        is_hopeless = feasible_nodes.rejection is not None or (refusal is not None and refusal.is_final)
        outcomes[node.name] = _NO_HELP if is_hopeless else _try(pod, node, snapshot, readable)
    candidates = [candidate for candidate in outcomes.values() if isinstance(candidate, Candidate)]
    if candidates:
        return min(candidates, key=_cost)
    refusals = [refusal for refusal in outcomes.values() if isinstance(refusal, Refusal)]
    return fit_error_message(refusals, len(snapshot.nodes))


def _ineligible(pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes) -> str:
    if pod.spec.get("preemptionPolicy") == "Never":
        return _NEVER
    name = nominated_node(pod.view.object)
    refusal = feasible_nodes.refusals.get(name)
    node = next((candidate for candidate in snapshot.nodes if candidate.name == name), None)
    if node is None or feasible_nodes.rejection is not None or (refusal is not None and refusal.is_final):
        return ""  # The nominated node does not fit any more.
    is_waiting = any(other.priority < pod.priority and _is_preempted(other) for other in node.pods.values())
    return _WAITING if is_waiting else ""


def _is_preempted(pod: PodInfo) -> bool:
    """Whether a scheduler has evicted the pod, so that it ends soon."""
    if not pod.view.deleting:
        return False
    condition = conditions.get(pod.view.object, CONDITION_DISRUPTION_TARGET) or {}
    return condition.get("status") == "True" and condition.get("reason") == PREEMPTED


def _try(
    pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot, budgets: Sequence[_Budget]
) -> Candidate | Refusal:
    """Remove all pods of lower priority, and add those back that need not be evicted, the most important first."""
    lesser = [lesser_pod for lesser_pod in node.pods.values() if lesser_pod.priority < pod.priority]
    if not lesser:
        return _NO_VICTIMS
    trial = node.copy()
    for lesser_pod in lesser:
        trial.remove(lesser_pod.view.uid)
    fits = _fitting(pod, trial, snapshot)
    refusal = fits()
    if refusal is not None:
        return refusal
    protected = _protected_pods(sorted(lesser, key=_importance), budgets)
    victims: list[PodInfo] = []
    for lesser_pod in sorted(lesser, key=lambda each: (each.view.uid not in protected, *_importance(each))):
        trial.add(lesser_pod)
        if fits() is not None:
            trial.remove(lesser_pod.view.uid)
            victims.append(lesser_pod)
    return Candidate(
        node=node.name,
        victims=sorted(victims, key=_importance),
        violations=sum(victim.view.uid in protected for victim in victims),
    )


def _fitting(pod: PodInfo, trial: NodeInfo, snapshot: ClusterSnapshot) -> Callable[[], Refusal | None]:
    """Builds all filters again each time: their counts change with the victims."""
    nodes = [trial if node.name == trial.name else node for node in snapshot.nodes]
    changed = replace(snapshot, nodes=nodes)
    return lambda: find_feasible(pod, changed, only=trial).refusals.get(trial.name)


def _protected_pods(pods: Iterable[PodInfo], budgets: Sequence[_Budget]) -> set[str]:
    """The uids of pods whose eviction violates a disruption budget."""
    remaining = [budget.disruptions_allowed for budget in budgets]
    protected = set()
    for pod in pods:
        for number, budget in enumerate(budgets):
            if budget.covers(pod):
                remaining[number] -= 1
                if remaining[number] < 0:
                    protected.add(pod.view.uid)
    return protected


def _importance(pod: PodInfo) -> tuple[int, datetime]:
    """Smaller is more important: higher priority first, then the earlier start."""
    return -pod.priority, _start_time(pod)


def _start_time(pod: PodInfo) -> datetime:
    text = (pod.view.object.get("status") or {}).get("startTime")
    return parse_time(text) if text else _LATEST


def _cost(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Order by: fewest violations, lowest highest priority, lowest sum of priorities, fewest pods, latest start."""
    victims = candidate.victims
    highest = max((victim.priority for victim in victims), default=-(2**31))
    earliest = min((_start_time(victim) for victim in victims if victim.priority == highest), default=_LATEST)
    return (
        candidate.violations,
        highest,
        sum(victim.priority + 2**31 for victim in victims),
        len(victims),
        -earliest.timestamp(),
    )

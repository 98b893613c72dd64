"""Select the node and the pods of lower priority to preempt, so that a pod fits. Pure.

Upstream: framework/preemption and plugins/defaultpreemption.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_DISRUPTION_TARGET

from .choice import FeasibleNodes, fit_error_message, rejection_on
from .cluster import ClusterSnapshot
from .filters.filter import Rejection
from .nodeinfo import NodeInfo
from .plugin_failure import PluginFailure
from .podinfo import PodInfo
from .pods import nominated_node
from .profile import Profile
from .profiles import DEFAULT_PROFILE

LOG: Final = logging.getLogger(__name__)
PREEMPTED: Final = "PreemptionByScheduler"
"""The reason of a victim's condition DisruptionTarget."""
_NO_VICTIMS_FOUND: Final = Rejection(("No preemption victims found for incoming pod",))
_NOT_HELPFUL: Final = Rejection(("Preemption is not helpful for scheduling",))
_POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
_VICTIMS_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
NO_CANDIDATE: Final = "no candidate node for preemption"
"""The message if extenders accept no candidate."""
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class Candidate(Struct, frozen=True, kw_only=True):
    """A node on which a pod fits after the eviction of victims."""

    node: str
    victims: Sequence[PodInfo]
    """The pods to evict, the most important first."""
    pdb_violations: int
    """The number of victims whose eviction violates a disruption budget."""


class _DisruptionBudget(Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    namespace: str
    selector: Selector
    disrupted: Container[str]
    disruptions_allowed: int

    def covers(self, pod: PodInfo) -> bool:
        if self.namespace != pod.view.key.namespace or not pod.view.labels:
            return False
        return pod.view.key.name not in self.disrupted and self.selector.matches(pod.view.labels)


def _read_budgets(trees: Iterable[ReadOnlyTree]) -> Iterator[_DisruptionBudget]:
    """Yield the budgets that cover pods. As upstream, a malformed budget covers none, and is no error."""
    for tree in trees:
        try:
            status = tree.get("status") or {}
            budget = _DisruptionBudget(
                namespace=meta.namespace(tree),
                selector=from_label_selector(tree["spec"].get("selector")),
                disrupted=frozenset(status.get("disruptedPods") or ()),
                disruptions_allowed=int(status.get("disruptionsAllowed", 0)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            LOG.debug("A disruption budget is malformed and is ignored: %s", error)
            continue
        if not budget.selector.empty:
            yield budget


class Preemption(Struct, frozen=True, kw_only=True):
    """The candidates of a preemption, or why it does not help."""

    candidates: Sequence[Candidate] = ()
    problem: str = ""
    """What the message of the pod says; "" if no pods are preempted in this profile."""
    keeps_nomination: bool = False
    """Whether `nominatedNodeName` stays as it is: the pod may not preempt others now, or extenders prevent it."""
    is_error: bool = False
    """Whether the preemption failed, so that the message of the pod says nothing of other plugins."""

    @classmethod
    def failed(cls, problem: object) -> "Preemption":
        return cls(problem=str(problem), keeps_nomination=True, is_error=True)

    @property
    def best(self) -> Candidate | None:
        return min(self.candidates, key=_preemption_order, default=None)


def find_candidates(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible_nodes: FeasibleNodes,
    budgets: Sequence[ReadOnlyTree],
    profile: Profile = DEFAULT_PROFILE,
    offset: float = 0.0,
) -> Preemption:
    """Return the nodes on which the pod fits without pods of lower priority.

    If the profile limits the candidates, the search begins at a share of the nodes, the `offset`.
    """
    problem = _eligibility_problem(pod, snapshot, feasible_nodes)
    if problem:
        return Preemption(problem=problem, keeps_nomination=True)
    pdbs = [*_read_budgets(budgets)]
    potential_nodes = [node for node in snapshot.nodes if _may_help(node, feasible_nodes)]
    rejections = [_NOT_HELPFUL] * (len(snapshot.nodes) - len(potential_nodes))
    candidates: list[Candidate] = []
    without_victims: list[str] = []
    limit = _candidates_of(profile, len(potential_nodes))
    first = int(offset * len(potential_nodes)) if limit is not None else 0
    for node in (*potential_nodes[first:], *potential_nodes[:first]):
        outcome = _select_victims_on_node(pod, node, snapshot, pdbs, profile)
        if isinstance(outcome, Rejection):
            rejections.append(outcome)
        elif outcome.victims:
            candidates.append(outcome)
        else:
            without_victims.append(node.name)
        if limit is not None and _are_enough(candidates, limit):
            break
    if candidates:
        return Preemption(candidates=candidates)
    if without_victims:  # Plugins accept a node that an extender rejected.
        return Preemption.failed(_aggregate(map(no_victims, sorted(without_victims))))
    return Preemption(problem=fit_error_message(rejections, len(snapshot.nodes)))


def no_victims(node: str) -> str:
    return f"expected at least one victim pod on node {quote(node)}"


def _aggregate(errors: Iterable[str]) -> str:
    """Return the text of errors as Go's NewAggregate has it."""
    first, *others = errors
    return f"[{', '.join((first, *others))}]" if others else first


def _may_help(node: NodeInfo, feasible_nodes: FeasibleNodes) -> bool:
    return not feasible_nodes.rejections[node.name].is_unresolvable


def _candidates_of(profile: Profile, nodes: int) -> int | None:
    """Return the number of candidates that are enough; None if all are compared."""
    if not profile.limits_candidates:
        return None
    assert profile.preemption is not None  # else no preemption is tried
    return profile.preemption.candidates_of(nodes)


def _are_enough(candidates: Sequence[Candidate], limit: int) -> bool:
    """Return whether the search ends: there are enough candidates, and one of them violates no budget."""
    return len(candidates) >= limit and any(not one.pdb_violations for one in candidates)


def _eligibility_problem(pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes) -> str:
    if pod.spec.get("preemptionPolicy") == "Never":
        return _POLICY_NEVER
    name = nominated_node(pod.view.object)
    node = next((candidate for candidate in snapshot.nodes if candidate.name == name), None)
    if node is None or not _may_help(node, feasible_nodes):
        return ""  # The nominated node does not fit any more.
    is_waiting = any(other.priority < pod.priority and _is_preempted(other) for other in node.pods.values())
    return _VICTIMS_TERMINATING if is_waiting else ""


def _is_preempted(pod: PodInfo) -> bool:
    """Return whether a scheduler has preempted the pod, so that it ends soon."""
    if not pod.view.deleting:
        return False
    condition = conditions.get(pod.view.object, CONDITION_DISRUPTION_TARGET) or {}
    return condition.get("status") == "True" and condition.get("reason") == PREEMPTED


def _select_victims_on_node(
    pod: PodInfo,
    node: NodeInfo,
    snapshot: ClusterSnapshot,
    budgets: Sequence[_DisruptionBudget],
    profile: Profile,
) -> Candidate | Rejection:
    """Return the candidate of a node: remove all pods of lower priority, and reprieve as many as fit.

    Pods whose eviction violates a budget are reprieved first, then the most important ones. Returns a rejection if the pod
    does not fit even without all of them.
    """
    lower_priority_pods = [other for other in node.pods.values() if other.priority < pod.priority]
    if not lower_priority_pods:
        return _NO_VICTIMS_FOUND
    node_copy = node.copy()
    for lower_priority_pod in lower_priority_pods:
        node_copy.remove(lower_priority_pod.view.uid)
    fits = _fit_check(pod, node_copy, snapshot, profile)
    rejection = fits()
    if rejection is not None:
        return rejection
    violating_uids = _pods_violating_pdbs(
        sorted(lower_priority_pods, key=_importance_order),
        budgets,
        counts_all=snapshot.gates.is_before("1.37"),
    )
    victims: list[PodInfo] = []
    for lower_priority_pod in sorted(
        lower_priority_pods,
        key=lambda other: (other.view.uid not in violating_uids, *_importance_order(other)),
    ):
        node_copy.add(lower_priority_pod)
        if fits() is not None:
            node_copy.remove(lower_priority_pod.view.uid)
            victims.append(lower_priority_pod)
    return Candidate(
        node=node.name,
        victims=sorted(victims, key=_importance_order),
        pdb_violations=sum(victim.view.uid in violating_uids for victim in victims),
    )


def _fit_check(
    pod: PodInfo, node_copy: NodeInfo, snapshot: ClusterSnapshot, profile: Profile
) -> Callable[[], Rejection | None]:
    """Return a function that checks whether the pod fits on the node, with new filters: their counts depend on its pods."""
    nodes = [node_copy if node.name == node_copy.name else node for node in snapshot.nodes]
    changed = replace(snapshot, nodes=nodes)

    def check() -> Rejection | None:
        try:
            return rejection_on(pod, node_copy, changed, profile)
        except PluginFailure as failure:
            return Rejection((str(failure),))

    return check


def _pods_violating_pdbs(
    pods: Iterable[PodInfo], budgets: Sequence[_DisruptionBudget], *, counts_all: bool
) -> set[str]:
    """Return the uids of the pods whose eviction violates a disruption budget.

    A pod counts for the budgets up to the first that it violates; with `counts_all`, as before 1.37, for all of them.
    """
    remaining = [budget.disruptions_allowed for budget in budgets]
    violating_uids = set()
    for pod in pods:
        for number, budget in enumerate(budgets):
            if budget.covers(pod):
                remaining[number] -= 1
                if remaining[number] < 0:
                    violating_uids.add(pod.view.uid)
                    if not counts_all:
                        break
    return violating_uids


def _importance_order(pod: PodInfo) -> tuple[int, datetime]:
    """Return the sort key of importance, the most important pod first: higher priority, then earlier start."""
    return -pod.priority, _start_time(pod)


def _start_time(pod: PodInfo) -> datetime:
    text = (pod.view.object.get("status") or {}).get("startTime")
    return parse_time(text) if text else _LATEST


def _preemption_order(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Return the sort key of candidates, the best first, by upstream's criteria.

    They are the fewest budget violations, the lowest highest priority, the lowest sum of priorities, the fewest victims,
    and the latest start of the victims with the highest priority.
    """
    victims = candidate.victims
    highest_priority = max((victim.priority for victim in victims), default=-(2**31))
    earliest_start = min(
        (_start_time(victim) for victim in victims if victim.priority == highest_priority), default=_LATEST
    )
    return (
        candidate.pdb_violations,
        highest_priority,
        sum(victim.priority + 2**31 for victim in victims),
        len(victims),
        -earliest_start.timestamp(),
    )

"""What a PodDisruptionBudget forbids, why a node is not ready, and what keeps the drain of a node from its end."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.labels import SelectorError, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD, TAINT_CONTROL_PLANE
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.component_base.counted import counted

from .commands import explanation_command, kubectl
from .explanation import (
    Evidence,
    Explanation,
    ObjectName,
    Origin,
    Related,
    Remedy,
    no_problem,
    unknown,
)
from .facts import Facts, Member
from .members import MAX_EXPLAINED, is_terminal, related_of
from .node_rejections import TAINTS_OF_CONTROLLERS, taint_text
from .partitions import explain_cut_off
from .pods import explain_pod
from .records import condition_evidence, find_events, unobserved
from .remedies import MERGE, patched, uncordoned, untainted

_EXCLUDING: Final = ("NoSchedule", "NoExecute")
"""The effects of taints that keep pods off a node."""
BUDGETS: Final = GroupResource("policy", "poddisruptionbudgets")


def selected_pods(budget: ReadOnlyTree, pods: Sequence[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    """Return those of some pods that a budget selects; without a selector it has none."""
    try:
        selector = from_label_selector(budget["spec"].get("selector"))
    except SelectorError:
        return ()
    namespace = meta.namespace(budget)
    return [
        pod
        for pod in pods
        if meta.namespace(pod) == namespace and selector.matches(meta.labels(pod)) and not is_terminal(pod)
    ]


def _may_evict_unready(budget: ReadOnlyTree) -> bool:
    """Return whether pods that are not ready may be evicted although no disruption is allowed."""
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    return budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= desired > 0


def _unevictable(budget: ReadOnlyTree) -> str:
    return "no ready pod" if _may_evict_unready(budget) else "no pod"


def explain_budget(budget: ReadOnlyTree, facts: Facts) -> Explanation:
    status = budget.get("status") or {}
    fields = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    counts = Evidence(
        text=", ".join(f"{field} {status.get(field) or 0}" for field in fields), source="status"
    )
    condition = conditions.get(budget, "DisruptionAllowed")
    if condition is not None and condition.get("reason") == "SyncFailed":
        return Explanation(
            cause=f"{_unevictable(budget)} may be evicted, because the budget cannot be computed: {condition.get('message')}",
            evidence=[condition_evidence(condition), counts],
        )
    if waiting := unobserved(budget):
        return waiting
    if not status:
        return unknown("it has no status: its controller has not looked at it yet, or does not run")
    if allowed := status.get("disruptionsAllowed"):
        return no_problem(f"{allowed} pods may be evicted now", counts)
    if not facts.may_list(PODS, meta.namespace(budget)):
        return unknown("it allows no disruption; its pods you may not list", counts)
    pods = selected_pods(budget, facts.list(PODS, meta.namespace(budget)))
    if not status.get("expectedPods") and not pods:
        return no_problem("it selects no pods, so that it forbids nothing", counts)
    return _allows_nothing(budget, pods, counts, facts)


def _allows_nothing(
    budget: ReadOnlyTree, pods: Sequence[ReadOnlyTree], counts: Evidence, facts: Facts
) -> Explanation:
    status = budget["status"]
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    unready = [pod for pod in pods if not conditions.is_true(pod, "Ready")]
    explained = [(pod, explain_pod(pod, facts)) for pod in unready[:MAX_EXPLAINED]]
    reason = (
        f"{healthy} pods are healthy, and {desired} must be"
        if status.get("expectedPods")
        else "its controller expects no pods yet"
    )
    return Explanation(
        cause=f"{_unevictable(budget)} may be evicted: {reason}",
        evidence=[counts, *map(condition_evidence, conditions.of(budget))],
        remedies=[
            *_looser(budget, healthy),
            *(each for _, found in explained[:1] for each in found.remedies),
        ],
        related=related_of(explained),
        origins=[
            *(each for _, found in explained[:1] for each in found.origins),
            Origin.of(
                budget, "spec", "minAvailable" if "minAvailable" in budget["spec"] else "maxUnavailable"
            ),
        ],
    )


def _looser(budget: ReadOnlyTree, healthy: int) -> Iterator[Remedy]:
    """Yield the change of a budget that allows one disruption."""
    if not healthy:
        return
    expected = budget["status"].get("expectedPods") or 0
    field, value = ("minAvailable", healthy - 1)
    if "minAvailable" not in budget["spec"]:
        field, value = "maxUnavailable", expected - healthy + 1
    text = "Make more pods ready, or let one pod be evicted:"
    yield patched(text, budget, {"spec": {field: value}}, media_type=MERGE)


def explain_node(node: ReadOnlyTree, facts: Facts) -> Explanation:
    found, taints = _explain_node(node, facts), _own_taints(node)
    return replace(
        found,
        evidence=[
            *found.evidence,
            *(Evidence(text=taint_text(each), source="spec.taints") for each in taints),
        ],
        origins=[
            *found.origins,
            *(Origin.of(node, "spec", "taints", Member(each["key"])) for each in taints),
        ],
    )


def _own_taints(node: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the taints of a node that keep pods off it, and that no controller has set."""
    return [
        each
        for each in (node.get("spec") or {}).get("taints") or ()
        if each["effect"] in _EXCLUDING and each["key"] not in TAINTS_OF_CONTROLLERS
    ]


def _explain_node(node: ReadOnlyTree, facts: Facts) -> Explanation:
    ready = conditions.get(node, "Ready")
    if ready is None:
        return unknown("no kubelet has reported the state of the node")
    if cut_off := explain_cut_off(node, facts):
        return replace(cut_off, evidence=[*cut_off.evidence, condition_evidence(ready)])
    if ready.get("status") != "True":
        return _not_ready(node, ready, facts)
    if (node.get("spec") or {}).get("unschedulable"):
        return _cordoned(node, ready, facts)
    pressures = [
        each
        for each in conditions.of(node)
        if each.get("status") == "True"
        and each.get("type") in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    if pressures:
        return Explanation(
            cause=f"the node has {pressures[0]['type']}: {pressures[0].get('message')}",
            evidence=[*map(condition_evidence, pressures)],
        )
    return _tainted(node, ready, facts) or no_problem("the node is ready", condition_evidence(ready))


def _tainted(node: ReadOnlyTree, ready: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain a node that keeps pods off it by its taints; None if it has none but that of the control plane."""
    taints = [each for each in _own_taints(node) if each["key"] != TAINT_CONTROL_PLANE]
    if not taints:
        return None
    waiting = [
        pod
        for pod in facts.list(PODS)
        if not pod["spec"].get("nodeName")
        and not is_terminal(pod)
        and find_untolerated_taint(pod["spec"], taints, _EXCLUDING) is not None
    ]
    pods = f"; {counted(len(waiting), 'pod that waits for a node does', 'pods that wait for a node do')} not tolerate it"
    return Explanation(
        cause=f"the node is ready, and takes only pods that tolerate {', '.join(map(taint_text, taints))}{pods if waiting else ''}",
        evidence=[condition_evidence(ready)],
        remedies=[untainted(f"Remove the taint {taint_text(each)}:", node, each) for each in taints],
        related=[
            Related(object=ObjectName.of(pod), cause="has no node, and does not tolerate it")
            for pod in waiting
        ],
    )


def _not_ready(node: ReadOnlyTree, ready: ReadOnlyTree, facts: Facts) -> Explanation:
    evidence = [condition_evidence(ready), *find_events(node, facts, ("NodeNotReady", "Starting"))]
    if ready.get("status") == "Unknown":
        return Explanation(
            cause="its kubelet has stopped reporting: the node controller set Ready to Unknown",
            evidence=evidence,
            remedies=[
                Remedy(
                    text="When its kubelet renewed its Lease last:",
                    command=kubectl(
                        "get", "lease", meta.name(node), "-o", "yaml", namespace="kube-node-lease"
                    ),
                )
            ],
        )
    return Explanation(
        cause=f"its kubelet reports that it is not ready: {ready.get('message') or ready.get('reason')}",
        evidence=evidence,
    )


def _cordoned(node: ReadOnlyTree, ready: ReadOnlyTree, facts: Facts) -> Explanation:
    name = meta.name(node)
    evidence = [
        Evidence(text="spec.unschedulable is true", source="spec.unschedulable"),
        condition_evidence(ready),
    ]
    uncordon = uncordoned("Let it take pods again:", node)
    origins = [Origin.of(node, "spec", "unschedulable")]
    if not (facts.may_list(PODS) and facts.may_list(BUDGETS)):
        return Explanation(
            cause="the node is cordoned: it takes no new pods",
            evidence=evidence,
            remedies=[uncordon],
            origins=origins,
        )
    blocked = [*_blocked(name, facts)]
    if not blocked:
        return Explanation(
            cause="the node is cordoned: it takes no new pods; no PodDisruptionBudget keeps a drain from its end",
            evidence=evidence,
            remedies=[uncordon],
            origins=origins,
        )
    pod, budget = blocked[0]
    return Explanation(
        cause=f"the node is cordoned, and a drain cannot evict {len(blocked)} of its pods, such as {meta.name(pod)}: "
        f"the PodDisruptionBudget {meta.name(budget)} allows no disruption",
        evidence=evidence,
        remedies=[
            Remedy(
                text="Why it forbids that:",
                command=explanation_command("PodDisruptionBudget", meta.namespace(budget), meta.name(budget)),
            ),
            uncordon,
        ],
        related=[
            Related(object=ObjectName.of(each), cause=f"may not be evicted because of {meta.name(rule)}")
            for each, rule in blocked
        ],
        origins=[*origins, Origin.of(budget, "spec")],
    )


def _blocked(node: str, facts: Facts) -> Sequence[tuple[ReadOnlyTree, ReadOnlyTree]]:
    """Return the pods of a node that may not be evicted, with their budgets."""
    budgets = [
        each for each in facts.list(BUDGETS) if not (each.get("status") or {}).get("disruptionsAllowed")
    ]
    pods = [pod for pod in facts.list(PODS) if pod["spec"].get("nodeName") == node and _is_drained(pod)]
    return [
        (pod, budget)
        for budget in budgets
        for pod in selected_pods(budget, pods)
        if conditions.is_true(pod, "Ready") or not _may_evict_unready(budget)
    ]


def _is_drained(pod: ReadOnlyTree) -> bool:
    """Return whether a drain evicts a pod: it leaves those of DaemonSets, those of files of the node, and those that end."""
    controller = meta.controller_of(pod) or {}
    is_of_node = controller.get("kind") == "DaemonSet" or ANNOTATION_MIRROR_POD in meta.annotations(pod)
    return not is_of_node and not meta.is_deleting(pod)

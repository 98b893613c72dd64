"""Why no node takes a pod: the filters of the scheduler judge all nodes again, and their verdict is compared with the recorded one."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import NAMESPACES, NODES, PODS, GroupResource
from mockube.apimachinery.quantity import Format, Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)
from mockube.client.cache.store import Store
from mockube.client.component_helpers.pod_requests import CPU
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.client.podview import PodView
from mockube.component_base.counted import counted
from mockube.scheduler.choice import FeasibleNodes, diagnosis, find_all_feasible, rejections_by_node
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.pods import DEFAULT_SCHEDULER, nominated_node, scheduler_name, uses_resources
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.volumes import Storage, stored

from .commands import about, explanation_command, kubectl
from .explanation import MAX_ITEMS, Evidence, Explanation, NodeVerdict, Related, Remedy, unknown
from .facts import Facts
from .owners import changed_in
from .records import condition_evidence, find_events
from .volumes import CLAIMS, CLASSES, VOLUMES, claim_names, claim_problems

STORAGE: Final[Mapping[str, GroupResource]] = {
    "claims": CLAIMS,
    "volumes": VOLUMES,
    "classes": CLASSES,
    "csi_nodes": GroupResource("storage.k8s.io", "csinodes"),
    "drivers": GroupResource("storage.k8s.io", "csidrivers"),
    "capacities": GroupResource("storage.k8s.io", "csistoragecapacities"),
    "attachments": GroupResource("storage.k8s.io", "volumeattachments"),
}
SCHEDULED: Final = "PodScheduled"
MAX_REMEDIES: Final = 6
VOLUME_BINDING: Final = "VolumeBinding"
UNSCHEDULABLE: Final = "NodeUnschedulable"
TAINTS: Final = "TaintToleration"
_OF_CONTROLLERS: Final = frozenset(
    {
        TAINT_NOT_READY,
        TAINT_UNREACHABLE,
        TAINT_UNSCHEDULABLE,
        TAINT_MEMORY_PRESSURE,
        TAINT_DISK_PRESSURE,
        TAINT_PID_PRESSURE,
        TAINT_NETWORK_UNAVAILABLE,
    }
)
"""The keys of taints that the node lifecycle controller adds again after they were removed."""


def explain_unscheduled(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a pod that has no node."""
    view, recorded = PodView.of(pod), conditions.get(pod, SCHEDULED)
    if gates := pod["spec"].get("schedulingGates"):
        return _gated(pod, [gate["name"] for gate in gates])
    scheduler = scheduler_name(view)
    if recorded is None:
        return _untried(pod, scheduler, facts)
    snapshot = _Snapshot(pod, facts) if scheduler == DEFAULT_SCHEDULER else None
    if snapshot is None or not snapshot.is_complete:
        return _recorded_only(pod, recorded, scheduler)
    return facts.memoized(("unscheduled", meta.uid(pod)), partial(snapshot.explain, recorded))


def _gated(pod: ReadOnlyTree, gates: Sequence[str]) -> Explanation:
    names = ", ".join(gates)
    patch = '[{"op":"remove","path":"/spec/schedulingGates"}]'
    return Explanation(
        cause=f"the pod is not scheduled until its scheduling gates are removed: {names}",
        evidence=[Evidence(text=f"spec.schedulingGates has {names}", source="spec.schedulingGates")],
        remedies=[
            Remedy(
                text="The controller that added a gate removes it. Without that controller, remove the gates:",
                command=about(pod, "patch", "--type=json", "-p", patch),
            )
        ],
    )


def _untried(pod: ReadOnlyTree, scheduler: str, facts: Facts) -> Explanation:
    seen = find_events(pod, facts, ("FailedScheduling", "Scheduled"), limit=MAX_ITEMS)
    fact = Evidence(text=f"the pod has no condition {SCHEDULED}", source="status.conditions")
    if scheduler == DEFAULT_SCHEDULER:
        return unknown(
            f"no scheduler has tried the pod yet: {scheduler} does not run, or is not there yet", fact, *seen
        )
    return unknown(
        f"no scheduler has tried the pod: it names {scheduler}, which mockube runs only with a profile of that name",
        Evidence(text=f"spec.schedulerName is {scheduler}", source="spec.schedulerName"),
        fact,
        *seen,
    )


def _recorded_only(pod: ReadOnlyTree, recorded: ReadOnlyTree, scheduler: str) -> Explanation:
    message = recorded.get("message") or recorded.get("reason") or "without a message"
    evidence = [condition_evidence(recorded)]
    if scheduler != DEFAULT_SCHEDULER:
        evidence.append(
            Evidence(
                text=f"the pod names {scheduler}: its plugins are not known, so nodes are not judged again",
                source="spec.schedulerName",
            )
        )
    if pod["spec"].get("resourceClaims"):
        evidence.append(Evidence(text="devices of nodes are not judged again", source="spec.resourceClaims"))
    return Explanation(cause=f"{scheduler} found no node: {message}", evidence=evidence)


class _Snapshot:
    """The nodes as the scheduler sees them, if the user may read all that it reads."""

    def __init__(self, pod: ReadOnlyTree, facts: Facts) -> None:
        self._pod, self._facts = pod, facts
        self._claims = claim_names(pod)
        lists = [NODES, PODS, NAMESPACES, *(STORAGE.values() if self._claims else ())]
        self.is_complete = not pod["spec"].get("resourceClaims") and all([*map(facts.may_list, lists)])

    def explain(self, recorded: ReadOnlyTree) -> Explanation:
        claims = [
            *claim_problems(self._pod, self._facts)
        ]  # first: a fact that is missing ends the explanation
        snapshot = self._facts.memoized(("snapshot", bool(self._claims)), self._make)
        info = PodInfo.of(PodView.of(self._pod), self._facts.gates)
        try:
            found = find_all_feasible(info, snapshot, DEFAULT_PROFILE, None)
            all_rejections = {} if found.feasible else rejections_by_node(info, snapshot, DEFAULT_PROFILE)
        except PluginFailure as failure:
            return unknown(f"the scheduler's plugins failed: {failure}", condition_evidence(recorded))
        agrees = _agrees(found, recorded)
        evidence = [condition_evidence(recorded)]
        if not agrees:
            evidence.append(_other_verdict(diagnosis(found, len(snapshot.nodes))))
        evidence += self._nomination()
        if found.feasible:
            return self._feasible(found, evidence)
        rejections = _without_cordon_taints(info, snapshot.nodes, all_rejections)
        remedies = [remedy for each in claims for remedy in each.remedies]
        if not _are_claims_rejected(found, rejections, self._claims):
            remedies = [*_remedies(info, snapshot.nodes, rejections)]
        return Explanation(
            cause=_cause(found, snapshot.nodes) if agrees else _recorded_cause(recorded),
            evidence=evidence,
            nodes=() if found.prefilter_rejection else [*_verdicts(info, snapshot.nodes, rejections)],
            remedies=remedies[:MAX_REMEDIES],
            related=[Related(object=each.subject, cause=each.cause) for each in claims],
        )

    def _make(self) -> ClusterSnapshot:
        facts = self._facts
        cache = SchedulerCache(facts.gates)
        for node in facts.list(NODES):
            cache.set_node(node)
        views = [PodView.of(pod) for pod in facts.list(PODS)]
        for view in filter(uses_resources, views):
            cache.update_pod(view, view.node)
        nominees = [
            PodInfo.of(view, facts.gates)
            for view in views
            if not view.node and view.is_active and nominated_node(view.object)
        ]
        labels = {meta.name(each): meta.labels(each) for each in facts.list(NAMESPACES)}
        return ClusterSnapshot(
            nodes=cache.nodes(),
            labels_of_namespace=lambda name: labels.get(name, {}),
            storage=self._storage(),
            nominees=lambda name: [each for each in nominees if nominated_node(each.view.object) == name],
            matching_counts=cache.matching_counts,
            users_of_claim=cache.users_of_claim,
            image_sizes=cache.image_sizes,
            topology_keys=cache.topology_keys,
            gates=facts.gates,
        )

    def _storage(self) -> Storage:
        """Return the objects of storage, which count only for a pod with claims."""

        def store(field: str) -> Store[ReadOnlyTree]:
            return stored(self._facts.list(STORAGE[field]) if self._claims else ())

        return Storage(
            claims=store("claims"),
            volumes=store("volumes"),
            classes=store("classes"),
            csi_nodes=store("csi_nodes"),
            drivers=store("drivers"),
            capacities=store("capacities"),
            attachments=store("attachments"),
        )

    def _nomination(self) -> Iterator[Evidence]:
        if nominated := nominated_node(self._pod):
            yield Evidence(
                text=f"the pod waits for {nominated}: pods that it preempts there have not ended",
                source="status.nominatedNodeName",
            )

    def _feasible(self, found: FeasibleNodes, evidence: Sequence[Evidence]) -> Explanation:
        names = ", ".join(node.name for node in found.feasible[:3])
        return unknown(
            f"the plugins of the default profile accept the pod now on {counted(len(found.feasible), 'node', 'nodes')}, such as {names}: the "
            "scheduler has not tried again, has a back-off, or has another profile",
            *evidence,
        )


def _are_claims_rejected(
    found: FeasibleNodes, rejections: Mapping[str, Sequence[Rejection]], claims: Sequence[str]
) -> bool:
    """Return whether the claims of a pod keep it from a node."""
    rejection = found.prefilter_rejection
    if rejection is not None:
        is_named = any(f'"{claim}"' in reason for claim in claims for reason in rejection.reasons)
        return is_named or rejection.plugin == VOLUME_BINDING
    return any(each.plugin == VOLUME_BINDING for each in chain.from_iterable(rejections.values()))


def _without_cordon_taints(
    pod: PodInfo, nodes: Sequence[NodeInfo], rejections: Mapping[str, Sequence[Rejection]]
) -> Mapping[str, Sequence[Rejection]]:
    """Return the rejections without that of the taint of a cordon: NodeUnschedulable rejects the node for the same cause."""
    doubles = {
        node.name
        for node in nodes
        if node.is_unschedulable
        and any(each.plugin == UNSCHEDULABLE for each in rejections[node.name])
        and _taint(pod, node) is None
    }
    return {
        name: [each for each in found if name not in doubles or each.plugin != TAINTS]
        for name, found in rejections.items()
    }


def _agrees(found: FeasibleNodes, recorded: ReadOnlyTree) -> bool:
    """Return whether the scheduler gave the reasons of now; the numbers of nodes may differ."""
    message = recorded.get("message") or ""
    rejections = [found.prefilter_rejection] if found.prefilter_rejection else found.rejections.values()
    return bool(found.feasible) or all(
        reason in message for rejection in rejections for reason in rejection.reasons
    )


def _other_verdict(verdict: str) -> Evidence:
    return Evidence(
        text=f"now the plugins of the default profile say: {verdict} The nodes, their pods or the profile differ from those "
        "of the scheduler's last attempt",
        source="scheduler plugins",
    )


def _recorded_cause(recorded: ReadOnlyTree) -> str:
    return f"the scheduler found no node: {recorded.get('message') or recorded.get('reason')}"


def _cause(found: FeasibleNodes, nodes: Sequence[NodeInfo]) -> str:
    if not nodes:
        return "the cluster has no nodes"
    if found.prefilter_rejection is not None:
        return f"no node can take the pod: {', '.join(found.prefilter_rejection.reasons)}"
    counts = Counter(reason for rejection in found.rejections.values() for reason in rejection.reasons)
    reasons = ", ".join(f"{reason} ({count})" for reason, count in counts.most_common())
    subject = "the only node cannot" if len(nodes) == 1 else f"none of {len(nodes)} nodes can"
    return f"{subject} take the pod: {reasons}"


# --- the table of nodes


def _verdicts(
    pod: PodInfo, nodes: Sequence[NodeInfo], rejections: Mapping[str, Sequence[Rejection]]
) -> Iterator[NodeVerdict]:
    """Yield what rejects each node; those that few plugins reject come first."""
    for node in sorted(nodes, key=lambda node: (len(rejections[node.name]), node.name)):
        for rejection in rejections[node.name]:
            detail = _DETAILS.get(rejection.plugin)
            yield NodeVerdict(
                node=node.name,
                plugin=rejection.plugin,
                reason=", ".join(rejection.reasons),
                detail=detail(pod, node) if detail else "",
            )


def _amount(name: str, value: int) -> str:
    return str(Quantity(Decimal(value).scaleb(-3)) if name == CPU else Quantity(value, Format.BINARY_SI))


def _missing_resources(pod: PodInfo, node: NodeInfo) -> Sequence[str]:
    return [
        name
        for name, amount in pod.requested.items()
        if amount > node.allocatable[name] - node.requested[name]
    ]


def _resource_detail(pod: PodInfo, node: NodeInfo) -> str:
    texts = [
        f"{name}: requests {_amount(name, pod.requested[name])}, "
        f"free {_amount(name, max(0, node.allocatable[name] - node.requested[name]))} "
        f"of {_amount(name, node.allocatable[name])}"
        for name in _missing_resources(pod, node)
    ]
    if len(node.pods) + 1 > node.max_pods:
        texts.append(f"pods: {len(node.pods)} of {node.max_pods}")
    return "; ".join(texts)


def _taint(pod: PodInfo, node: NodeInfo) -> ReadOnlyTree | None:
    """Return the first taint that the pod does not tolerate, without that of a cordon."""
    taints = [
        each for each in node.taints if not (node.is_unschedulable and each["key"] == TAINT_UNSCHEDULABLE)
    ]
    return find_untolerated_taint(pod.spec, taints, ("NoSchedule", "NoExecute"))


def _taint_text(taint: ReadOnlyTree) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _taint_detail(pod: PodInfo, node: NodeInfo) -> str:
    taint = _taint(pod, node)
    return "" if taint is None else _taint_text(taint)


def _missing_labels(pod: PodInfo, node: NodeInfo) -> Sequence[str]:
    selector = pod.spec.get("nodeSelector") or {}
    return [f"{key}={value}" for key, value in selector.items() if node.labels.get(key) != value]


def _label_detail(pod: PodInfo, node: NodeInfo) -> str:
    missing = _missing_labels(pod, node)
    return f"lacks {', '.join(missing)}" if missing else "spec.affinity.nodeAffinity does not select it"


_DETAILS: Final[Mapping[str, Callable[[PodInfo, NodeInfo], str]]] = {
    "NodeResourcesFit": _resource_detail,
    TAINTS: _taint_detail,
    "NodeAffinity": _label_detail,
}


# --- what would have to change


def _remedies(
    pod: PodInfo, nodes: Sequence[NodeInfo], rejections: Mapping[str, Sequence[Rejection]]
) -> Iterator[Remedy]:
    """Yield what would have to change on the nodes that lack least: with several plugins, all of it."""
    fewest = min((len(each) for each in rejections.values()), default=0)
    nearest = [node for node in nodes if len(rejections[node.name]) == fewest]
    if fewest > 1:
        yield Remedy(text=f"On no node does a single change help: the nearest one needs {fewest}.")
    seen = set()
    for node in nearest:
        for rejection in rejections[node.name]:
            plugin = rejection.plugin
            if plugin not in seen and plugin in _REMEDIES:
                yield from _REMEDIES[plugin](pod, [*nearest])
            elif plugin not in seen and plugin:
                yield Remedy(
                    text=f"Change what {plugin} rejects on {node.name}: {', '.join(rejection.reasons)}."
                )
            seen.add(plugin)


def _resource_remedies(pod: PodInfo, nodes: Sequence[NodeInfo]) -> Iterator[Remedy]:
    for name in dict.fromkeys(name for node in nodes for name in _missing_resources(pod, node)):
        best = max(nodes, key=lambda node: node.allocatable[name] - node.requested[name])
        free = max(0, best.allocatable[name] - best.requested[name])
        yield Remedy(
            text=f"Request at most {_amount(name, free)} of {name}, which {best.name} has free, or end pods there."
        )
    full = [node for node in nodes if len(node.pods) + 1 > node.max_pods]
    if full:
        yield Remedy(text=f"End a pod on {full[0].name}: it has {full[0].max_pods} pods, its maximum.")
    yield Remedy(text="Or add nodes that are large enough: `mockube nodes --help`.")


def _taint_remedies(pod: PodInfo, nodes: Sequence[NodeInfo]) -> Iterator[Remedy]:
    for node in nodes:
        taint = _taint(pod, node)
        if taint is not None and taint["key"] in _OF_CONTROLLERS:
            yield Remedy(
                text=f"Why a controller has set the taint {_taint_text(taint)} of {node.name}:",
                command=explanation_command("node", "", node.name),
            )
            return
        if taint is not None:
            # Unlike most fields of a pod, tolerations may be added to one that exists.
            place = "the pod" if meta.controller_of(pod.view.object) is None else "the pod's template"
            yield Remedy(text=f"Add a toleration of {_taint_text(taint)} to {place}.")
            yield Remedy(
                text=f"Remove the taint from {node.name}:",
                command=kubectl("taint", "nodes", node.name, f"{taint['key']}:{taint['effect']}-"),
            )
            return


def _cordon_remedies(_: PodInfo, nodes: Sequence[NodeInfo]) -> Iterator[Remedy]:
    for node in nodes:
        if node.is_unschedulable:
            yield Remedy(text=f"Let {node.name} accept pods:", command=kubectl("uncordon", node.name))
            return


def _label_remedies(pod: PodInfo, nodes: Sequence[NodeInfo]) -> Iterator[Remedy]:
    missing = _missing_labels(pod, nodes[0])
    if missing:
        yield Remedy(
            text=f"Label a node, such as {nodes[0].name}:",
            command=kubectl("label", "nodes", nodes[0].name, *missing, "--overwrite"),
        )
        yield Remedy(text=f"Or change spec.nodeSelector in {changed_in(pod.view.object)}.")
    else:
        place = changed_in(pod.view.object)
        yield Remedy(text=f"Change spec.affinity.nodeAffinity in {place}, or the labels of a node.")


_REMEDIES: Final[Mapping[str, Callable[[PodInfo, Sequence[NodeInfo]], Iterator[Remedy]]]] = {
    "NodeResourcesFit": _resource_remedies,
    TAINTS: _taint_remedies,
    UNSCHEDULABLE: _cordon_remedies,
    "NodeAffinity": _label_remedies,
}

"""Why no node takes a pod: the filters of the scheduler judge all nodes again, and their verdict is compared with the recorded one."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import NAMESPACES, NODES, PODS, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Store
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

from .explanation import (
    MAX_ITEMS,
    MAX_ORIGINS,
    Evidence,
    Explanation,
    NodeVerdict,
    Origin,
    Related,
    Remedy,
    unknown,
)
from .facts import Facts
from .node_rejections import (
    PLUGINS,
    TAINTS,
    UNSCHEDULABLE,
    Rejected,
    is_reserved,
    untolerated_taint,
)
from .owners import template_origin, template_owner
from .records import condition_evidence, find_events
from .remedies import JSON, patched, template_patch
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
NO_NODES: Final = "the cluster has no nodes"
AFFINITY: Final = "NodeAffinity"
PLACEMENT: Final = ("NodeName", AFFINITY, TAINTS)
VOLUME_BINDING: Final = "VolumeBinding"


def explain_unscheduled(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a pod that has no node."""
    view, recorded = PodView.of(pod), conditions.get(pod, SCHEDULED)
    if gates := pod["spec"].get("schedulingGates"):
        return _gated(pod, [gate["name"] for gate in gates], facts)
    scheduler = scheduler_name(view)
    if recorded is None:
        return _untried(pod, scheduler, facts)
    snapshot = _Snapshot(pod, facts) if scheduler == DEFAULT_SCHEDULER else None
    if snapshot is None or not snapshot.is_complete:
        return _recorded_only(pod, recorded, scheduler)
    return facts.memoized(("unscheduled", meta.uid(pod)), partial(snapshot.explain, recorded))


def explain_placement(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a pod that no node may run, by the plugins by which a DaemonSet's controller selects nodes."""
    snapshot = _Snapshot(pod, facts)
    if not snapshot.is_complete:
        return unknown(
            "no node should run its pod; why cannot be said without the right to list nodes and pods"
        )
    return snapshot.explain_placement()


def explain_tainted(pod: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Return which nodes do not run the pods of a DaemonSet only because of taints; None if there is none, or not all is known."""
    snapshot = _Snapshot(pod, facts)
    return snapshot.explain_tainted() if snapshot.is_complete else None


def _gated(pod: ReadOnlyTree, gates: Sequence[str], facts: Facts) -> Explanation:
    names = ", ".join(gates)
    patch = [{"op": "remove", "path": "/spec/schedulingGates"}]
    return Explanation(
        cause=f"the pod is not scheduled until its scheduling gates are removed: {names}",
        evidence=[Evidence(text=f"spec.schedulingGates has {names}", source="spec.schedulingGates")],
        remedies=[
            patched(
                "The controller that added a gate removes it. Without that controller, remove the gates:",
                pod,
                patch,
                media_type=JSON,
            )
        ],
        origins=[
            template_origin(pod, facts, "schedulingGates"),
            Origin.of(pod, "spec", "schedulingGates"),
        ],
    )


def _untried(pod: ReadOnlyTree, scheduler: str, facts: Facts) -> Explanation:
    seen = find_events(pod, facts, ("FailedScheduling", "Scheduled"), limit=MAX_ITEMS)
    fact = Evidence(text=f"the pod has no condition {SCHEDULED}", source="status.conditions")
    if scheduler == DEFAULT_SCHEDULER:
        return unknown(
            f"no scheduler has tried the pod yet: {scheduler} does not run, or is not there yet", fact, *seen
        )
    owner = template_owner(pod, facts)
    return Explanation(
        cause=f"no scheduler has tried the pod: its schedulerName is {scheduler}, and no scheduler of that name runs; mockube runs {DEFAULT_SCHEDULER}, and others only with a profile of that name",
        evidence=[
            Evidence(text=f"spec.schedulerName is {scheduler}", source="spec.schedulerName"),
            fact,
            *seen,
        ],
        remedies=[
            patched(
                f"Let {DEFAULT_SCHEDULER} schedule it:",
                owner,
                template_patch(owner, {"schedulerName": DEFAULT_SCHEDULER}),
            ),
            Remedy(
                text=f"Or start the scheduler {scheduler}, or create the pod anew without spec.schedulerName."
            ),
        ],
        origins=[template_origin(pod, facts, "schedulerName")],
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
            all_rejections = {} if found.feasible else _rejections(found, info, snapshot)
        except PluginFailure as failure:
            return unknown(f"the scheduler's plugins failed: {failure}", condition_evidence(recorded))
        agrees = _agrees(found, recorded)
        evidence = [condition_evidence(recorded)]
        if not agrees:
            evidence.append(_other_verdict(diagnosis(found, len(snapshot.nodes))))
        evidence += self._nominations(info, snapshot)
        if found.feasible:
            return self._feasible(found, evidence)
        rejections = _without_cordon_taints(info, snapshot.nodes, all_rejections)
        remedies = [remedy for each in claims for remedy in each.remedies]
        origins = [origin for each in claims for origin in each.origins]
        nearest = _nearest(info, snapshot.nodes, rejections)
        rejected = Rejected(pod=info, nodes=nearest, snapshot=snapshot, facts=self._facts)
        cause = _cause(found, rejected, rejections)
        if claims and _are_claims_rejected(found, rejections, self._claims):
            # The scheduler names a claim that does not exist, but not one that is not bound.
            cause += f"; {claims[0].cause}" if claims[0].subject.name not in cause else ""
        elif nearest:
            remedies = [*_remedies(rejected, rejections)]
            origins = [*_origins(rejected, rejections)]
        verdicts = () if found.prefilter_rejection else [*_verdicts(rejected, rejections)]
        return Explanation(
            cause=cause + _first_detail(verdicts) if agrees else _recorded_cause(recorded),
            evidence=evidence,
            nodes=verdicts,
            remedies=remedies[:MAX_REMEDIES],
            related=[Related(object=each.subject, cause=each.cause) for each in claims],
            origins=origins[:MAX_ORIGINS],
        )

    def _placement(self) -> tuple[ClusterSnapshot, PodInfo, Mapping[str, Sequence[Rejection]]]:
        """Return the nodes, and which plugins keep the pod of a DaemonSet from each."""
        snapshot = self._facts.memoized(("snapshot", bool(self._claims)), self._make)
        info = PodInfo.of(PodView.of(self._pod), self._facts.gates)
        return (
            snapshot,
            info,
            {
                name: [each for each in found if each.plugin in PLACEMENT]
                for name, found in rejections_by_node(info, snapshot, DEFAULT_PROFILE).items()
            },
        )

    def explain_tainted(self) -> Explanation | None:
        """Return which nodes only taints keep free of a pod; None if no node is one of these."""
        snapshot, info, rejections = self._placement()
        tainted = [
            node for node in snapshot.nodes if {each.plugin for each in rejections[node.name]} == {TAINTS}
        ]
        if not tainted:
            return None
        rejected = Rejected(pod=info, nodes=tainted, snapshot=snapshot, facts=self._facts)
        plugin = PLUGINS[TAINTS]
        return Explanation(
            cause=f"{counted(len(tainted), 'node has', 'nodes have')} none, because of a taint that its pods do not tolerate: "
            f"{tainted[0].name}: {plugin.detail(rejected)}",
            remedies=[*plugin.remedies(rejected)],
        )

    def explain_placement(self) -> Explanation:
        snapshot, info, rejections = self._placement()
        if not snapshot.nodes:
            return Explanation(cause=NO_NODES)
        nearest = _nearest(info, snapshot.nodes, rejections)
        if not rejections[nearest[0].name]:
            return unknown(
                f"{nearest[0].name} may run its pod now, and its controller has not looked at it again"
            )
        rejected = Rejected(pod=info, nodes=nearest, snapshot=snapshot, facts=self._facts)
        verdicts = [*_verdicts(rejected, rejections)]
        return Explanation(
            cause=f"none of {counted(len(snapshot.nodes), 'node', 'nodes')} may run its pod: {_reasons(rejected, rejections)}{_first_detail(verdicts)}",
            nodes=verdicts,
            remedies=[*_remedies(rejected, rejections)][:MAX_REMEDIES],
            origins=[*_origins(rejected, rejections)][:MAX_ORIGINS],
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

    def _nominations(self, pod: PodInfo, snapshot: ClusterSnapshot) -> Iterator[Evidence]:
        if nominated := nominated_node(self._pod):
            yield Evidence(
                text=f"the pod waits for {nominated}: pods that it preempts there have not ended",
                source="status.nominatedNodeName",
            )
        for node in snapshot.nodes:
            for other in snapshot.nominees(node.name):
                if other.priority >= pod.priority and other.view.uid != pod.view.uid:
                    yield Evidence(
                        text=f"{other.view.key} waits for {node.name}, too",
                        source=f"status.nominatedNodeName of {other.view.key}",
                    )

    def _feasible(self, found: FeasibleNodes, evidence: Sequence[Evidence]) -> Explanation:
        names = ", ".join(node.name for node in found.feasible[:3])
        return unknown(
            f"the plugins of the default profile accept the pod now on {counted(len(found.feasible), 'node', 'nodes')}, such as {names}: the "
            "scheduler has not tried again, has a back-off, or has another profile",
            *evidence,
        )


def _rejections(
    found: FeasibleNodes, pod: PodInfo, snapshot: ClusterSnapshot
) -> Mapping[str, Sequence[Rejection]]:
    """Return what rejects each node; where only pods that are nominated for it leave no room, what they leave."""
    rejections = rejections_by_node(pod, snapshot, DEFAULT_PROFILE)
    return {name: each or [found.rejections[name]] for name, each in rejections.items()}


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
        and untolerated_taint(pod, node) is None
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


def _cause(found: FeasibleNodes, rejected: Rejected, rejections: Mapping[str, Sequence[Rejection]]) -> str:
    count = len(rejected.snapshot.nodes)
    if not count:
        return NO_NODES
    if found.prefilter_rejection is not None:
        return f"no node can take the pod: {', '.join(found.prefilter_rejection.reasons)}"
    subject = "the only node cannot" if count == 1 else f"none of {count} nodes can"
    return f"{subject} take the pod: {_reasons(rejected, rejections)}"


def _reasons(rejected: Rejected, rejections: Mapping[str, Sequence[Rejection]]) -> str:
    """Return why nodes are rejected, by all plugins: those of most nodes first, and the taint of the control plane last."""
    nodes = rejected.snapshot.nodes
    reserved = _reserved(rejected.pod, nodes)
    counts = Counter(
        reason
        for node in nodes
        if node.name not in reserved
        for each in rejections[node.name]
        for reason in each.reasons
    )
    reasons = [f"{reason} ({count})" for reason, count in counts.most_common()]
    if reserved:
        reasons.append(f"node(s) of the control plane ({len(reserved)})")
    return ", ".join(reasons)


def _reserved(pod: PodInfo, nodes: Sequence[NodeInfo]) -> Collection[str]:
    """Return the nodes that keep the pod out as those of the control plane; none if no other node is there."""
    reserved = {node.name for node in nodes if is_reserved(pod, node)}
    return reserved if len(reserved) < len(nodes) else ()


# --- the table of nodes


def _first_detail(verdicts: Sequence[NodeVerdict]) -> str:
    """Return what the node that lacks least lacks, for the cause."""
    first = next((each for each in verdicts if each.detail), None)
    return "" if first is None else f"; {first.node}: {first.detail}"


def _verdicts(rejected: Rejected, rejections: Mapping[str, Sequence[Rejection]]) -> Iterator[NodeVerdict]:
    """Yield what rejects each node; those that few plugins reject come first, and those of the control plane last."""
    nodes = rejected.snapshot.nodes
    reserved = _reserved(rejected.pod, nodes)
    for node in sorted(
        nodes,
        key=lambda node: (
            node.name in reserved,
            len(rejections[node.name]),
            _is_unselected(node, rejections),
            node.name,
        ),
    ):
        for rejection in rejections[node.name]:
            plugin = PLUGINS.get(rejection.plugin)
            yield NodeVerdict(
                node=node.name,
                plugin=rejection.plugin,
                reason=", ".join(rejection.reasons),
                detail=plugin.detail(replace(rejected, nodes=[node])) if plugin else "",
            )


# --- what would have to change


def _remedies(rejected: Rejected, rejections: Mapping[str, Sequence[Rejection]]) -> Iterator[Remedy]:
    """Yield what would have to change on the nodes that lack least: with several plugins, all of it."""
    fewest = len(rejections[rejected.node.name])
    if fewest > 1:
        yield Remedy(text=f"On no node does a single change help: the nearest one needs {fewest}.")
    for plugin, nodes in _nodes_by_plugin(rejected.nodes, rejections).items():
        if plugin in PLUGINS:
            yield from PLUGINS[plugin].remedies(replace(rejected, nodes=nodes))
        else:
            reasons = next(each.reasons for each in rejections[nodes[0].name] if each.plugin == plugin)
            yield Remedy(text=f"Change what {plugin} rejects on {nodes[0].name}: {', '.join(reasons)}.")


def _origins(rejected: Rejected, rejections: Mapping[str, Sequence[Rejection]]) -> Iterator[Origin]:
    for plugin, nodes in _nodes_by_plugin(rejected.nodes, rejections).items():
        if plugin in PLUGINS:
            yield from PLUGINS[plugin].origins(replace(rejected, nodes=nodes))


def _nodes_by_plugin(
    nodes: Sequence[NodeInfo], rejections: Mapping[str, Sequence[Rejection]]
) -> Mapping[str, Sequence[NodeInfo]]:
    """Return the plugins that reject some nodes, each with the nodes that it rejects."""
    found: dict[str, list[NodeInfo]] = {}
    for node in nodes:
        for plugin in dict.fromkeys(each.plugin for each in rejections[node.name] if each.plugin):
            found.setdefault(plugin, []).append(node)
    return found


def _nearest(
    pod: PodInfo, nodes: Sequence[NodeInfo], rejections: Mapping[str, Sequence[Rejection]]
) -> Sequence[NodeInfo]:
    """Return the nodes that the fewest plugins reject, and none of the control plane if there are others."""
    reserved = _reserved(pod, nodes)
    others = [node for node in nodes if node.name not in reserved]
    fewest = min((len(rejections[node.name]) for node in others), default=0)
    nearest = [node for node in others if len(rejections[node.name]) == fewest]
    return sorted(nearest, key=lambda node: _is_unselected(node, rejections))


def _is_unselected(node: NodeInfo, rejections: Mapping[str, Sequence[Rejection]]) -> bool:
    """Return whether a pod does not select a node: those that it selects come before others that lack as much."""
    return any(each.plugin == AFFINITY for each in rejections[node.name])

"""Why a Deployment, a ReplicaSet, a StatefulSet or a DaemonSet does not progress."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_REVISION,
    LABEL_CONTROLLER_REVISION_HASH,
    LABEL_POD_TEMPLATE_HASH,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)
from mockube.component_base.counted import counted

from .commands import about
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
from .facts import Facts
from .members import Members
from .owners import REPLICA_SETS
from .records import find_condition, find_events, unobserved
from .remedies import MERGE, deleted, patched, scaled
from .scheduling import explain_placement, explain_tainted


def scaled_to_zero(obj: ReadOnlyTree) -> Explanation:
    return Explanation(
        state="NoProblem",
        cause="it is scaled to 0: it has no pods because spec.replicas is 0",
        evidence=[Evidence(text="spec.replicas is 0", source="spec.replicas")],
        remedies=[scaled("Scale it:", obj, 1)],
        origins=[Origin.of(obj, "spec", "replicas")],
    )


def replicas_of(obj: ReadOnlyTree) -> int:
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _count(obj: ReadOnlyTree, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def _counts(obj: ReadOnlyTree, *fields: str) -> Evidence:
    text = ", ".join(f"{field} {_count(obj, field)}" for field in fields)
    return Evidence(text=text, source="status")


# --- Deployments and ReplicaSets


def explain_deployment(deployment: ReadOnlyTree, facts: Facts) -> Explanation:
    replicas = replicas_of(deployment)
    counts = _counts(deployment, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    is_complete = all(
        _count(deployment, field) == replicas
        for field in ("replicas", "updatedReplicas", "availableReplicas")
    )
    if waiting := unobserved(deployment):
        return waiting
    if is_complete and not replicas:
        return scaled_to_zero(deployment)
    if is_complete:
        newest = _newest_replica_set(deployment, facts)
        members = Members(newest or deployment, facts)
        return members.all_ready(f"all {replicas} pods are updated and available", counts)
    if deployment["spec"].get("paused") and not _is_up_to_date(deployment, facts):
        return _paused(deployment, counts)
    newest = _newest_replica_set(deployment, facts)
    if newest is None:
        return _without_replica_set(deployment, counts, facts)
    evidence = [counts, *find_condition(deployment, "Progressing")]
    pod_count = replicas_of(newest)
    explanation = Members(newest, facts).explain(pod_count, "the Deployment") if pod_count else None
    if explanation is None:
        return _rolling(deployment, newest, evidence)
    return replace(
        explanation,
        cause=f"the ReplicaSet {meta.name(newest)}: {explanation.cause}",
        evidence=[*explanation.evidence, *evidence],
        related=explanation.related or [Related(object=ObjectName.of(newest), cause=explanation.cause)],
    )


def _is_up_to_date(deployment: ReadOnlyTree, facts: Facts) -> bool:
    """Return whether the newest ReplicaSet is that of the template, with its metadata: then a pause is no cause."""
    newest = _newest_replica_set(deployment, facts)
    if newest is None:
        return False
    return _comparable(deployment["spec"]["template"]) == _comparable(newest["spec"]["template"])


def _comparable(template: ReadOnlyTree) -> tuple[object, object, object]:
    """Return what a Deployment and its ReplicaSet have in common: the ReplicaSet has one more label."""
    metadata = template.get("metadata") or {}
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if key != LABEL_POD_TEMPLATE_HASH
    }
    return labels, metadata.get("annotations") or {}, template.get("spec")


def _paused(deployment: ReadOnlyTree, counts: Evidence) -> Explanation:
    return Explanation(
        cause="the Deployment is paused: its changed template is not rolled out",
        evidence=[Evidence(text="spec.paused is true", source="spec.paused"), counts],
        remedies=[
            patched(
                "Resume it:",
                deployment,
                {"spec": {"paused": None}},
                media_type=MERGE,
                command=about(deployment, "rollout resume"),
            )
        ],
        origins=[Origin.of(deployment, "spec", "paused")],
    )


def _newest_replica_set(deployment: ReadOnlyTree, facts: Facts) -> ReadOnlyTree | None:
    revision = meta.annotations(deployment).get(ANNOTATION_REVISION)
    for candidate in facts.list(REPLICA_SETS, meta.namespace(deployment)):
        is_newest = meta.annotations(candidate).get(ANNOTATION_REVISION) == revision
        if meta.is_controlled_by(candidate, deployment) and is_newest:
            return candidate
    return None


def _without_replica_set(deployment: ReadOnlyTree, counts: Evidence, facts: Facts) -> Explanation:
    if not facts.may_list(REPLICA_SETS, meta.namespace(deployment)):
        return unknown("the Deployment cannot be explained without the right to list ReplicaSets", counts)
    failures = find_events(deployment, facts, ("ReplicaSetCreateError",))
    if failures:
        return Explanation(
            cause=f"its ReplicaSet cannot be created: {failures[0].text}", evidence=[*failures, counts]
        )
    return unknown("the Deployment has no ReplicaSet of its revision, and no failure is recorded", counts)


def _rolling(deployment: ReadOnlyTree, newest: ReadOnlyTree, evidence: Sequence[Evidence]) -> Explanation:
    """Explain a Deployment whose newest ReplicaSet has the pods that it should have now."""
    available, seconds = _count(newest, "availableReplicas"), deployment["spec"].get("minReadySeconds")
    if seconds and available < _count(newest, "readyReplicas"):
        return Explanation(
            cause=f"pods are ready, but available only after minReadySeconds, {seconds} seconds",
            evidence=[
                Evidence(text=f"minReadySeconds is {seconds}", source="spec.minReadySeconds"),
                *evidence,
            ],
        )
    pod_count = replicas_of(newest)
    return unknown(
        f"the rollout goes on: the ReplicaSet {meta.name(newest)} has its {counted(pod_count, 'pod', 'pods')}, of which {available} are available",
        *evidence,
    )


def explain_replica_set(replica_set: ReadOnlyTree, facts: Facts) -> Explanation:
    replicas = replicas_of(replica_set)
    counts = _counts(replica_set, "replicas", "readyReplicas", "availableReplicas")
    if waiting := unobserved(replica_set):
        return waiting
    if not replicas and not _count(replica_set, "replicas"):
        return no_problem("it is scaled to 0", counts)
    members = Members(replica_set, facts)
    return members.explain(replicas, "the ReplicaSet") or members.all_ready(_all_ready(replicas), counts)


# --- StatefulSets


def explain_stateful_set(stateful_set: ReadOnlyTree, facts: Facts) -> Explanation:
    replicas = replicas_of(stateful_set)
    counts = _counts(stateful_set, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    if waiting := unobserved(stateful_set):
        return waiting
    if not replicas and not _count(stateful_set, "replicas"):
        return scaled_to_zero(stateful_set)
    members = Members(stateful_set, facts)
    if members.unready and stateful_set["spec"].get("podManagementPolicy") != "Parallel":
        return _blocked_by_first(members, replicas, counts)
    explanation = members.explain(replicas, "the StatefulSet")
    return (
        explanation
        or _old_revision(stateful_set, members, counts)
        or members.all_ready(_all_ready(replicas), counts)
    )


def _ordinal(pod: ReadOnlyTree) -> int:
    suffix = meta.name(pod).rpartition("-")[2]
    return int(suffix) if suffix.isdecimal() else 0


def _blocked_by_first(members: Members, replicas: int, counts: Evidence) -> Explanation:
    """Explain a StatefulSet that handles its pods one after another."""
    first = min(members.unready, key=_ordinal)
    explanation = members.explain_pods([first], replicas)
    waiting = replicas - len(members.pods) - len(members.ending) - len(members.ended)
    order = f"; {waiting} more pods are created only when it is ready" if waiting > 0 else ""
    return replace(explanation, cause=explanation.cause + order, evidence=[*explanation.evidence, counts])


def _old_revision(stateful_set: ReadOnlyTree, members: Members, counts: Evidence) -> Explanation | None:
    """Explain ready pods that still have the template of before."""
    revision = (stateful_set.get("status") or {}).get("updateRevision")
    old = [pod for pod in members.pods if meta.labels(pod).get(LABEL_CONTROLLER_REVISION_HASH) != revision]
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    if not old or not revision:
        return None
    if strategy.get("type") == "OnDelete":
        cause = f"{_of_before(len(old))}: with OnDelete a pod is replaced when it is deleted"
        return Explanation(cause=cause, evidence=[counts], remedies=[_delete_pod(old[0])])
    if all(_ordinal(pod) < partition for pod in old):
        return no_problem(
            f"{counted(len(old), 'pod keeps', 'pods keep')} the template of before, because the partition is {partition}",
            counts,
        )
    return unknown(f"{_of_before(len(old))}; the update goes on", counts)


def _delete_pod(pod: ReadOnlyTree) -> Remedy:
    return deleted("Delete a pod, so that it is replaced:", pod)


# --- DaemonSets


def explain_daemon_set(daemon_set: ReadOnlyTree, facts: Facts) -> Explanation:
    pod_count = _count(daemon_set, "desiredNumberScheduled")
    counts = _counts(
        daemon_set,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
    )
    if waiting := unobserved(daemon_set):
        return waiting
    if not pod_count:
        return _no_nodes(daemon_set, counts, facts)
    members = Members(daemon_set, facts)
    explanation = members.explain(pod_count, "the DaemonSet")
    if explanation is not None:
        return explanation
    updated = _count(daemon_set, "updatedNumberScheduled")
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if updated < pod_count and strategy.get("type") == "OnDelete":
        return Explanation(
            cause=f"{_of_before(pod_count - updated)}: with OnDelete a pod is replaced when it is deleted",
            evidence=[counts],
        )
    if updated < pod_count:
        return unknown(f"{updated} of {pod_count} pods are updated; the update goes on", counts)
    found = members.all_ready(_all_ready(pod_count), counts)
    tainted = explain_tainted(_pod_of_template(daemon_set), facts)
    if tainted is None:
        return found
    return replace(
        found, cause=f"{found.cause}; {tainted.cause}", remedies=[*found.remedies, *tainted.remedies]
    )


def _all_ready(count: int) -> str:
    return "its pod is ready" if count == 1 else f"all {count} pods are ready"


def _of_before(count: int) -> str:
    return f"{counted(count, 'pod has', 'pods have')} the template of before"


_TOLERATED: Final = (
    (TAINT_NOT_READY, "NoExecute"),
    (TAINT_UNREACHABLE, "NoExecute"),
    (TAINT_DISK_PRESSURE, "NoSchedule"),
    (TAINT_MEMORY_PRESSURE, "NoSchedule"),
    (TAINT_PID_PRESSURE, "NoSchedule"),
    (TAINT_UNSCHEDULABLE, "NoSchedule"),
    (TAINT_NETWORK_UNAVAILABLE, "NoSchedule"),
)
"""The taints that the pods of every DaemonSet tolerate, the last one in the network of the host."""


def _no_nodes(daemon_set: ReadOnlyTree, counts: Evidence, facts: Facts) -> Explanation:
    """Explain a DaemonSet that reaches no node, by a pod of its template."""
    found = explain_placement(_pod_of_template(daemon_set), facts)
    return replace(found, evidence=[counts, *found.evidence])


def _pod_of_template(daemon_set: ReadOnlyTree) -> ReadOnlyTree:
    template = daemon_set["spec"]["template"]
    spec = template["spec"]
    taints = _TOLERATED if spec.get("hostNetwork") else _TOLERATED[:-1]
    defaults = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in taints]
    reference = {"apiVersion": meta.api_version(daemon_set), "kind": "DaemonSet", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **(template.get("metadata") or {}),
            "name": meta.name(daemon_set),
            "namespace": meta.namespace(daemon_set),
            "uid": meta.uid(daemon_set),
            "ownerReferences": [{**reference, "name": meta.name(daemon_set), "uid": meta.uid(daemon_set)}],
        },
        "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), *defaults]},
    }

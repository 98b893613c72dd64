"""Why a pod is not scheduled, not started, not ready, restarting, evicted or ended."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import NODES
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from .assumptions import assumed_evidence, assumed_remedies, assumed_text
from .commands import kubectl
from .containers import Container, Finding, containers_of, explain_container, explain_end
from .explanation import Evidence, Explanation, Origin, Remedy, unknown
from .facts import Facts, Member
from .logs import reason_in_log
from .owners import changed_in, template_origin
from .partitions import explain_cut_off
from .records import condition_evidence, find_condition, find_events
from .remedies import deleted, patched
from .scheduling import explain_unscheduled
from .volumes import volume_problems

_REJECTED: Final = {
    "SysctlForbidden": ("securityContext", "sysctls"),
    "AppArmor": ("securityContext", "appArmorProfile"),
    "NodeAffinity": ("affinity",),
    "PodFeatureUnsupported": ("os",),
    "PodOSNotSupported": ("os",),
    "PodOSSelectorNodeLabelDoesNotMatch": ("os",),
}
"""The fields of a pod's spec for which a kubelet rejects it, by the reason of its failure."""
_NAMED: Final = Member("")
"""The member that a message names."""
_EVICTIONS: Final[Sequence[tuple[re.Pattern[str], tuple[str | Member, ...], str]]] = (
    (
        re.compile(r"Container (\S+) exceeded its local ephemeral storage limit"),
        ("containers", _NAMED, "resources", "limits", "ephemeral-storage"),
        "Raise limits.ephemeral-storage of the container {0}, or let it write less",
    ),
    (
        re.compile(r"ephemeral local storage usage exceeds the total limit of containers (\S+)\."),
        ("containers",),
        "Raise limits.ephemeral-storage of the containers above {0}, or let them write less",
    ),
    (
        re.compile(r'EmptyDir volume "([^"]+)" exceeds the limit'),
        ("volumes", _NAMED, "emptyDir", "sizeLimit"),
        "Raise sizeLimit of the volume {0}, or let the containers write less into it",
    ),
    (
        re.compile(r"The node was low on resource: ([\w-]+)"),
        ("containers",),
        "Let the containers request as much {0} as they use, since pods that use more are evicted first",
    ),
)
"""The messages of evictions, with the field of the pod's spec that they are about, and what to change."""
RECENT: Final = timedelta(minutes=10)
"""How long the end of a container is a problem of a pod that is ready again: the back-off of a kubelet is reset then."""


def explain_pod(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    if phase == "Failed":
        return _failed(pod, facts)
    if phase == "Succeeded":
        return Explanation(
            state="NoProblem",
            cause=f"the pod has ended: all its containers ended with exit code 0{assumed_text([pod])}",
            evidence=[_phase(pod), *assumed_evidence([pod])],
            remedies=[*assumed_remedies([pod])],
        )
    if not pod["spec"].get("nodeName"):
        return explain_unscheduled(pod, facts)
    return (
        _lost_node(pod, facts)
        or _waiting_init(pod, facts)
        or _waiting_containers(pod, facts)
        or _readiness(pod, facts)
    )


def _phase(pod: ReadOnlyTree) -> Evidence:
    return Evidence(text=f"the phase is {(pod.get('status') or {}).get('phase')}", source="status.phase")


# --- ended


def _failed(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    status = pod["status"]
    reason, message = status.get("reason"), status.get("message")
    disruption = conditions.get(pod, "DisruptionTarget")
    evidence = [_phase(pod)]
    if disruption is not None:
        evidence.append(condition_evidence(disruption))
    if reason:
        evidence += [
            Evidence(text=f"{reason}: {message or 'without a message'}", source="status.reason"),
            *find_events(
                pod, facts, ("Evicted", "Preempted", "TaintManagerEviction", "NodeNotReady", reason)
            ),
        ]
        cause = f"the pod was evicted: {message}" if reason == "Evicted" else f"the pod failed: {reason}"
        if reason != "Evicted" and message:
            cause += f": {message}"
        origins = [template_origin(pod, facts, *_REJECTED[reason])] if reason in _REJECTED else []
        remedies = [Remedy(text=f"Change {each.path[-1]} in {changed_in(pod)}.") for each in origins]
        for pattern, path, text in _EVICTIONS if reason == "Evicted" else ():
            if (found := pattern.search(message or "")) is not None:
                names = [Member(found[1]) if step is _NAMED else step for step in path]
                origins.append(template_origin(pod, facts, *names))
                remedies.append(Remedy(text=f"{text.format(found[1])}, in {changed_in(pod)}."))
        return Explanation(
            cause=cause, evidence=evidence, remedies=[*remedies, *_replacement(pod)], origins=origins
        )
    if disruption is not None and disruption.get("status") == "True":
        cause = f"the pod was disrupted: {disruption.get('reason')}: {disruption.get('message')}"
        return Explanation(cause=cause, evidence=evidence, remedies=[*_replacement(pod)])
    failures = [
        each
        for each in (*containers_of(pod, init=True), *containers_of(pod))
        if each.terminated and each.terminated.get("exitCode")
    ]
    if not failures:
        return unknown("the pod failed, and no container says why", *evidence)
    return _of_findings([explain_end(each, facts) for each in failures], evidence, "the pod failed: ")


def _replacement(pod: ReadOnlyTree) -> Iterator[Remedy]:
    if meta.controller_of(pod) is None:
        yield deleted("No controller replaces the pod: delete it, and create it again:", pod)


# --- not started


def _lost_node(pod: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain a pod whose node is gone, or whose kubelet has stopped reporting."""
    name = pod["spec"]["nodeName"]
    if facts.is_missing(NODES, "", name):
        return Explanation(
            cause=f"the pod is bound to the node {name}, which does not exist",
            evidence=[Evidence(text=f"spec.nodeName is {name}", source="spec.nodeName")],
            remedies=[deleted("Delete the pod, so that its controller makes another one:", pod, "--force")],
            origins=[Origin.named("v1", "Node", "", name)],
        )
    node = facts.find(NODES, "", name)
    ready = None if node is None else conditions.get(node, "Ready")
    if ready is None or ready.get("status") != "Unknown" or conditions.is_true(pod, "Ready"):
        return None
    if node is not None and (cut_off := explain_cut_off(node, facts)):
        return replace(cut_off, evidence=[*cut_off.evidence, *find_condition(pod, "Ready")])
    return Explanation(
        cause=f"the kubelet of {name} has stopped reporting, so nothing is known of the containers: {ready.get('reason')}",
        evidence=[condition_evidence(ready), *find_condition(pod, "Ready")],
        remedies=[Remedy(text="What the node reports:", command=kubectl("describe", "node", name))],
    )


def _waiting_init(pod: ReadOnlyTree, facts: Facts) -> Explanation | None:
    if conditions.is_true(pod, "Initialized"):
        return None
    for position, container in enumerate(containers_of(pod, init=True)):
        end = container.terminated
        if end is not None and end.get("exitCode") == 0 and not container.is_sidecar:
            continue
        if container.is_sidecar and container.status.get("started"):
            continue
        count = len(containers_of(pod, init=True))
        return _explain_init(container, f"{position + 1} of {count}", facts)
    return None


def _explain_init(container: Container, position: str, facts: Facts) -> Explanation:
    if container.running is None or container.is_sidecar:
        finding = explain_container(container, facts)
        return _of_findings([finding], [*find_condition(container.pod, "Initialized")], "")
    log = facts.log(container.pod, container.name, previous=False)
    reason = reason_in_log(container.pod, container.spec, container.place, log, facts)
    return Explanation(
        cause=f"the init container {container.name} ({position}) runs and has not ended: the containers wait for it{reason or ''}",
        evidence=[
            *find_condition(container.pod, "Initialized"),
            Evidence(
                text="runs",
                source=f"{container.field}.state.running",
                time=container.running.get("startedAt") or "",
            ),
            *(reason.evidence if reason else ()),
            *(Evidence(text=line, source=f"log of {container.name}") for line in log),
        ],
        origins=reason.origins if reason else (),
        remedies=[
            *(reason.remedies if reason else ()),
            Remedy(
                text="What it prints:",
                command=kubectl(
                    "logs",
                    meta.name(container.pod),
                    "-c",
                    container.name,
                    namespace=meta.namespace(container.pod),
                ),
            ),
        ],
    )


def _waiting_containers(pod: ReadOnlyTree, facts: Facts) -> Explanation | None:
    containers = [*containers_of(pod), *(each for each in containers_of(pod, init=True) if each.is_sidecar)]
    unready = [each for each in containers if not each.status.get("ready") and not _is_done(each)]
    if not unready:
        return None
    if not (pod.get("status") or {}).get("containerStatuses"):
        problems = [*volume_problems(pod, facts)]
        if problems:
            return Explanation(
                cause=problems[0].cause,
                evidence=find_events(pod, facts, ("FailedMount",)),
                remedies=[remedy for each in problems for remedy in each.remedies],
                origins=[origin for each in problems for origin in each.origins],
            )
        node = pod["spec"]["nodeName"]
        return unknown(
            f"the kubelet of {node} has not reported the pod's containers",
            Evidence(text=f"spec.nodeName is {node}", source="spec.nodeName"),
            *find_condition(pod, "PodScheduled"),
        )
    findings = [explain_container(each, facts) for each in unready]
    return _of_findings(findings, [*find_condition(pod, "Ready")], "")


def _is_done(container: Container) -> bool:
    """Return whether a container has ended as it should: it is not restarted."""
    end = container.terminated
    return end is not None and end.get("exitCode") == 0 and not container.is_restarted


def _of_findings(findings: Sequence[Finding], evidence: Sequence[Evidence], prefix: str) -> Explanation:
    """Return the explanation of several containers: a cause that is known is the first."""
    ordered = sorted(findings, key=lambda finding: not finding.is_known)
    first = ordered[0]
    others = [Evidence(text=f"also, {each.cause}") for each in ordered[1:]]
    return Explanation(
        state="Explained" if first.is_known else "Unknown",
        cause=prefix + first.cause,
        evidence=[*first.evidence, *others, *evidence],
        remedies=[remedy for each in ordered for remedy in each.remedies],
        origins=[origin for each in ordered for origin in each.origins],
    )


# --- started


def _readiness(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    ready = conditions.get(pod, "Ready")
    if ready is not None and ready.get("status") == "True":
        return _ready(pod, facts)
    gates = [each["conditionType"] for each in pod["spec"].get("readinessGates") or ()]
    missing = [gate for gate in gates if not conditions.is_true(pod, gate)]
    if missing:
        return Explanation(
            cause=f"the containers are ready, but the readiness gates are not: {', '.join(missing)}",
            evidence=[
                *find_condition(pod, "Ready"),
                *(each for gate in missing for each in find_condition(pod, gate)),
            ],
            remedies=[
                patched(
                    f"The controller of {missing[0]} sets the condition {missing[0]} to True in the pod's status. "
                    "mockube has no such controller. To set it by hand:",
                    pod,
                    {"status": {"conditions": [{"type": missing[0], "status": "True"}]}},
                    subresource="status",
                )
            ],
            origins=[template_origin(pod, facts, "readinessGates")],
        )
    return unknown("all containers are ready, but the pod is not", *find_condition(pod, "Ready"))


def _ready(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    restarted = [each for each in containers_of(pod) if each.restarts and each.last_end]
    recent = [each for each in restarted if _is_recent(each.last_end or {}, facts)]
    ready = [*find_condition(pod, "Ready")]
    if recent:
        return _of_findings([explain_end(each, facts) for each in recent], ready, "the pod is ready, but ")
    ends = [
        Evidence(
            text=f"the container {each.name} has been restarted {each.restarts} times",
            source=f"{each.field}.restartCount",
            time=(each.last_end or {}).get("finishedAt") or "",
        )
        for each in restarted
    ]
    assumed = [*assumed_evidence([pod])]
    return Explanation(
        state="NoProblem",
        cause=f"the pod is ready{assumed_text([pod])}",
        evidence=[*ready, *assumed, *ends],
        remedies=[*assumed_remedies([pod])],
    )


def _is_recent(end: ReadOnlyTree, facts: Facts) -> bool:
    finished = str(end.get("finishedAt") or "")
    return bool(finished) and facts.now - parse_time(finished) <= RECENT

"""The lifecycle of a pod on its node: its start, its phase and readiness, its deadline and its end.

Pure and stateless: each step follows from the pod and the time, so that a simulated kubelet may be stopped and started
at any moment, as a real one.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import FAILED, PENDING, SUCCEEDED
from mockube.controller_manager.kubelet.effects import REST, Effect, EmitEvent, Remove, Step, Write
from mockube.controller_manager.kubelet.pod_lifecycle import order
from mockube.controller_manager.kubelet.pod_lifecycle.order import (
    Members,
    PodContainers,
    earliest,
    members_of,
    processes_to_stop,
)
from mockube.controller_manager.kubelet.pod_lifecycle.pod_status import (
    PodState,
    difference,
    kubelet_conditions,
)
from mockube.controller_manager.kubelet.pod_lifecycle.preemption import preempted_status
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.pod_lifecycle.program import KILLED
from mockube.controller_manager.kubelet.pod_lifecycle.resize import NodeResources, resize
from mockube.controller_manager.kubelet.pod_lifecycle.script import NEVER, Script, script_of

_OVERDUE: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


class NodeContext(Struct, frozen=True, kw_only=True):
    """The node of a pod, as far as its lifecycle needs it."""

    ip: str
    pod_ips: Sequence[str]
    """The pod's own, if it has none yet."""
    resources: NodeResources
    details: bool
    """Whether it writes all that a kubelet does: events, ids, the sandbox's condition, and the last status of a deleted
    pod. kwok writes none of these."""
    processes: Mapping[str, ProcessState] = field(default_factory=dict)
    """The pod's containers that are local processes, by name."""


def step(pod: ReadOnlyTree, context: NodeContext, now: datetime) -> Step:
    """Return the kubelet's next step for a pod that is bound to its node."""
    script = script_of(meta.annotations(pod))
    members = members_of(pod, script, ids=context.details, processes=context.processes)
    if meta.is_deleting(pod):
        return _terminate(pod, members, script, context, now)
    if _is_over(pod):
        return REST
    deadline = _deadline(pod, now)
    if deadline is not None and deadline <= now:
        if to_stop := processes_to_stop(members):
            return Step(effects=to_stop.events if context.details else (), actions=to_stop.actions)
        stopped = order.stop(members, now, code=KILLED)
        status = _status(pod, replace(stopped, phase=FAILED), context, now)
        events = (EmitEvent("Normal", *_OVERDUE.values()), *stopped.events) if context.details else ()
        return Step(effects=(*events, *_writes(pod, {**status, **_OVERDUE})))
    return _advance(pod, members, script, context, now)


def preempt(pod: ReadOnlyTree, context: NodeContext, since: datetime, now: datetime) -> Step:
    """End a pod that was preempted at a time: its containers stop as in its deletion."""
    script = script_of(meta.annotations(pod))
    members = members_of(pod, script, ids=context.details, processes=context.processes)
    if to_stop := processes_to_stop(members):
        return Step(effects=to_stop.events if context.details else (), actions=to_stop.actions)
    takes = NEVER if script.hang_terminating else script.terminate_after
    ends = now if context.processes else after(since, span_of(min(takes, order.grace_seconds(pod))))
    if ends > now:
        return Step(again_at=ends)
    stopped = replace(order.stop(members, now), phase=FAILED)
    status = preempted_status(pod, _status(pod, stopped, context, now), now)
    return Step(effects=(*(stopped.events if context.details else ()), *_writes(pod, status)))


def _advance(
    pod: ReadOnlyTree, members: Members, script: Script, context: NodeContext, now: datetime
) -> Step:
    begins = after(_first_seen(pod, now), span_of(script.start_after))
    if _phase(pod) == PENDING and (begins > now or script.waiting_reason):
        containers = order.wait(members, script.waiting_reason or "ContainerCreating")
        containers = replace(containers, due=begins if begins > now else None)
    else:
        containers = order.run(members, now)
    resized = resize(
        pod, [container for container, _ in members.main], containers.main, context.resources, now
    )
    containers = replace(containers, main=resized.statuses, due=earliest(containers.due, resized.due))
    pod_then = meta.with_value(pod, ("status", "conditions"), resized.conditions)
    effects: list[Effect] = [*_writes(pod, _status(pod_then, containers, context, now))]
    if "startTime" not in (pod.get("status") or {}):
        effects += [EmitEvent("Warning", "InvalidAnnotation", problem) for problem in script.problems]
    if context.details:
        effects += containers.events
    ends = containers.phase in (SUCCEEDED, FAILED)
    again_at = None if ends else earliest(containers.due, _deadline(pod, now))
    return Step(effects=tuple(effects), actions=containers.actions, again_at=again_at)


def _terminate(
    pod: ReadOnlyTree, members: Members, script: Script, context: NodeContext, now: datetime
) -> Step:
    """End a deleted pod: its containers stop, and it is deleted without further grace."""
    if to_stop := processes_to_stop(members):
        return Step(effects=to_stop.events if context.details else (), actions=to_stop.actions)
    grace = meta.deletion_grace_period_seconds(pod) or 0
    deadline = meta.deletion_timestamp(pod)
    # Without grace the server removes it by itself, after its last finalizer.
    if grace == 0 or deadline is None or script.hang_terminating:
        return REST
    if _is_over(pod):
        return Step(effects=(Remove(),))
    ends = min(deadline, after(deadline, span_of(script.terminate_after - grace)))
    ends = now if context.processes else ends  # it took as long as its processes did
    if ends > now:
        return Step(again_at=ends)
    effects: list[Effect] = []
    # The last status is deleted with the pod.
    if context.details or meta.finalizers(pod):
        stopped = order.stop(members, now)
        effects += _writes(pod, _status(pod, stopped, context, now))
        effects += stopped.events if context.details else ()
    return Step(effects=(*effects, Remove()))


# --- the pod's status


def _phase(pod: ReadOnlyTree) -> str:
    return (pod.get("status") or {}).get("phase") or PENDING


def _is_over(pod: ReadOnlyTree) -> bool:
    return _phase(pod) in (SUCCEEDED, FAILED)


def _first_seen(pod: ReadOnlyTree, now: datetime) -> datetime:
    text = (pod.get("status") or {}).get("startTime")
    return parse_time(text) if text else now


def _deadline(pod: ReadOnlyTree, now: datetime) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else after(_first_seen(pod, now), span_of(seconds))


# --- what is written


def _status(
    pod: ReadOnlyTree, containers: PodContainers, context: NodeContext, now: datetime
) -> dict[str, Any]:
    old = pod.get("status") or {}
    state = PodState(
        phase=containers.phase,
        not_initialized=containers.not_initialized,
        not_ready=containers.not_ready,
        has_sandbox_condition=context.details,
    )
    pod_ips = _pod_ips(pod, old, context)
    status = {
        **old,
        "conditions": kubelet_conditions(pod, state, now),
        "containerStatuses": containers.main,
        "hostIP": context.ip,
        "hostIPs": [{"ip": context.ip}],
        "observedGeneration": meta.generation(pod),
        "phase": containers.phase,
        "podIP": pod_ips[0]["ip"],
        "podIPs": pod_ips,
        "startTime": old.get("startTime") or format_time(now),
    }
    if containers.init:
        status["initContainerStatuses"] = containers.init
    if containers.ephemeral:
        status["ephemeralContainerStatuses"] = containers.ephemeral
    return status


def _pod_ips(pod: ReadOnlyTree, old: ReadOnlyTree, context: NodeContext) -> Sequence[ReadOnlyTree]:
    if pod["spec"].get("hostNetwork"):
        return [{"ip": context.ip}]
    if old.get("podIP"):
        return old.get("podIPs") or [{"ip": old["podIP"]}]
    return [{"ip": address} for address in context.pod_ips]


def _writes(pod: ReadOnlyTree, status: ReadOnlyTree) -> Iterator[Write]:
    patch = difference(pod.get("status") or {}, status)
    if patch:
        # The uid keeps the patch from another pod that took this one's name.
        yield Write(body={"metadata": {"uid": meta.uid(pod)}, "status": patch})

"""Update a pod in place: take it out of service, change it, and put it back when its new containers run.

A readiness gate keeps the pod out of service. It opens for every pod that is not being updated, new ones among them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, record
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from mockube.controller_manager.workloads.inplace.record import Change

GATE: Final = "InPlaceUpdateReady"
_NOT_READY: Final = {
    "reason": "ReadinessGatesNotReady",
    "message": f'the status of pod readiness gate "{GATE}" is not "True", but False',
}


class Order(Struct, frozen=True, kw_only=True):
    """An update that is to begin."""

    change: Change
    labels: Mapping[str, str]
    """The label with the pod's revision from now on."""
    grace_seconds: int
    """How long the pod is out of service before it changes."""


class Step(Struct, frozen=True, kw_only=True):
    """What is to be done about an update that is going on, or about a gate that should be open."""

    patches: tuple[Patch, ...] = ()
    again_after: timedelta | None = None


NO_STEP: Final = Step()


# --- what is so


def is_in_service(pod: PodView, min_ready_seconds: int, now: datetime) -> bool:
    """It runs, was ready for so long, and its gate is not shut."""
    is_available = pod.phase == RUNNING and pod.is_available(min_ready_seconds, now)
    return is_available and not conditions.is_false(pod.object, GATE)


def is_finished(pod: PodView) -> bool:
    return not record.is_waiting(pod) and _runs_anew(pod)


def _runs_anew(pod: PodView) -> bool:
    """Whether each container whose image was replaced runs another one, or at least the one in the spec."""
    statuses = {status["name"]: status for status in record.container_statuses(pod)}
    named = {
        container["name"]: container.get("image") or "" for container in pod.object["spec"]["containers"]
    }
    return all(
        name in statuses and _is_replaced(statuses[name], image_id, named.get(name, ""))
        for name, image_id in record.replaced_images(pod).items()
    )


def _is_replaced(status: ReadOnlyTree, image_id: str, image: str) -> bool:
    return (status.get("imageID") or "") != image_id or _with_tag(status.get("image") or "") == _with_tag(
        image
    )


def _with_tag(image: str) -> str:
    return image if ":" in image else f"{image}:latest"


# --- what is done


def begin(pod: PodView, order: Order, now: datetime, event: EventTemplate | None = None) -> tuple[Patch, ...]:
    """Close the gate first: a pod that is about to change must receive no traffic."""
    is_out = conditions.is_false(pod.object, GATE) and not pod.is_ready
    out = (_close_gate(pod, now),) if readiness.has_gate(pod.object, GATE) and not is_out else ()
    change = order.change
    annotations: dict[str, str | None] = {**lifecycle.annotations_of(now)}
    if order.grace_seconds > 0:
        annotations[record.ANNOTATION_STATE] = record.state_text(pod, change, now, is_made=False)
        annotations[record.ANNOTATION_GRACE] = record.waiting_text(change, order.grace_seconds)
        labels = {**order.labels, **lifecycle.labels_of(State.UPDATING)}
        return (*out, _patch(pod, {"labels": labels, "annotations": annotations}, {}, event))
    labels = {**order.labels, **lifecycle.labels_of(State.UPDATING)}
    return (*out, _update_patch(pod, change, now, labels=labels, annotations=annotations, event=event))


def step(pod: PodView, now: datetime, *, revision: str) -> Step:
    """What the time or the pod's containers have made possible; `revision` is the one that the pod is known by."""
    if record.is_waiting(pod):
        return _end_of_wait(pod, now, revision)
    is_open = not readiness.has_gate(pod.object, GATE) or conditions.is_true(pod.object, GATE)
    if is_open or not _runs_anew(pod):
        return NO_STEP
    return Step(
        patches=(readiness.readiness_patch(pod, readiness.condition(pod, GATE, {"status": "True"}, now)),)
    )


def _end_of_wait(pod: PodView, now: datetime, revision: str) -> Step:
    waits = record.waiting(pod)
    if waits is None or waits.change.revision != revision:
        annotations = {record.ANNOTATION_GRACE: None}  # the update is decided again
        return Step(patches=(_patch(pod, {"annotations": annotations}, {}),))
    due = record.update_end(pod, waits)
    if due is not None and due > now:
        return Step(again_after=due - now)
    since = record.update_time(pod) or now
    return Step(
        patches=(_update_patch(pod, waits.change, since, annotations={record.ANNOTATION_GRACE: None}),)
    )


def _update_patch(
    pod: PodView,
    change: Change,
    since: datetime,
    *,
    annotations: Mapping[str, str | None],
    labels: Mapping[str, str] | None = None,
    event: EventTemplate | None = None,
) -> Patch:
    """Return the patch of the change. Labels of the workload and the record override those of the template."""
    state = record.state_text(pod, change, since, is_made=True)
    metadata = {
        "labels": {**change.labels, **(labels or {})},
        "annotations": {**change.annotations, **annotations, record.ANNOTATION_STATE: state},
    }
    containers = [{"name": name, "image": image} for name, image in change.images.items()]
    return _patch(pod, metadata, {"spec": {"containers": containers}} if containers else {}, event)


def _patch(
    pod: PodView, metadata: ReadOnlyTree, rest: ReadOnlyTree, event: EventTemplate | None = None
) -> Patch:
    body = {"metadata": {"uid": pod.uid, **metadata}, **rest}
    return Patch(resource=PODS, key=pod.key, kind="strategic", body=body, event=event)


# --- the gate


def _close_gate(pod: PodView, now: datetime) -> Patch:
    shut = [readiness.condition(pod, GATE, {"status": "False", "reason": "StartInPlaceUpdate"}, now)]
    if pod.is_ready:  # the kubelet reports when it is ready again
        shut.append(readiness.condition(pod, CONDITION_READY, {"status": "False", **_NOT_READY}, now))
    return readiness.readiness_patch(pod, *shut)


# --- the steps of a pod, with the hooks that may hold it


def observe_pod(
    pod: PodView, hooks: Lifecycle, now: datetime, *, revision: str, desired_revision: str
) -> Step:
    """Continue the pod's update and lifecycle; `revision` is that of the pod."""
    pod_step = step(pod, now, revision=revision)
    is_done = is_finished(pod)
    state = lifecycle.next_state(pod, hooks, is_updated=revision == desired_revision, is_finished=is_done)
    moved = () if state is None else readiness.move(pod, state, hooks, now)
    patches = (*pod_step.patches, *readiness.open_new_gate(pod, now), *moved)
    return Step(patches=patches, again_after=pod_step.again_after)


def change_pod(
    pod: PodView, hooks: Lifecycle, order: Order, now: datetime, event: EventTemplate
) -> tuple[Patch, ...]:
    """A pod with a hook is prepared first, and waits until the hook is released."""
    hook, state = hooks.in_place_update, lifecycle.state_of(pod)
    if hook is not None:
        if state == State.UPDATED:
            return readiness.hold(pod, State.PREPARING_UPDATE, hooks, now)
        if state == State.PREPARING_UPDATE and hook.holds(pod):
            return ()
        if state != State.UPDATING and hook.holds(pod):
            return readiness.move(pod, State.PREPARING_UPDATE, hooks, now)
    return begin(pod, order, now, event)


def patches_without_gates(
    step_patches: Iterable[Patch], update_patches: Iterable[Patch]
) -> tuple[Patch, ...]:
    """Return the pods' patches without the gate patches of pods whose update starts now.

    A gate that was closed for a change that failed stays closed: else it would open and close for ever.
    """
    changing = {patch.key for patch in update_patches}
    return tuple(patch for patch in step_patches if not (patch.subresource and patch.key in changing))

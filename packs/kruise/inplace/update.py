"""Update a pod in place: take it out of service, change it, and put it back when its new containers run.

Containers with launch priorities are changed in batches: each batch waits until the containers of the one before are ready.

A readiness gate takes the pod out of service. It is open for all pods that are not being updated, including new ones.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY
from mockube.client.kinds import PODS
from mockube.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.workloads.pod_steps import NO_STEP, PodStep

from . import lifecycle, readiness, record
from .lifecycle import Lifecycle, LifecycleState
from .record import TemplateChange

GATE: Final = "InPlaceUpdateReady"
_NOT_READY: Final = {
    "reason": "ReadinessGatesNotReady",
    "message": f'the status of pod readiness gate "{GATE}" is not "True", but False',
}


class UpdateRequest(Struct, frozen=True, kw_only=True):
    """The parameters of an in-place update."""

    change: TemplateChange
    labels: Mapping[str, str]
    """The labels with the new revision of the pod."""
    grace_seconds: int
    """The time for which the pod is out of service before the change is applied."""


# --- state


def is_in_service(pod: PodView, min_ready_seconds: int, now: datetime) -> bool:
    """Return whether a pod runs, has been ready for `min_ready_seconds`, and its gate is not closed."""
    is_available = pod.phase == RUNNING and pod.is_available(min_ready_seconds, now)
    return is_available and not conditions.is_false(pod.object, GATE)


def is_finished(pod: PodView) -> bool:
    """Return whether no in-place update of the pod is in progress."""
    return not record.has_delayed_change(pod) and _runs_new_images(pod) and not record.remaining_images(pod)


def _runs_new_images(pod: PodView) -> bool:
    """Return whether each updated container runs another image id than before, or the image in the spec."""
    statuses = {status["name"]: status for status in record.container_statuses(pod)}
    spec_images = {
        container["name"]: container.get("image") or "" for container in pod.object["spec"]["containers"]
    }
    return all(
        name in statuses and _is_replaced(statuses[name], image_id, spec_images.get(name, ""))
        for name, image_id in record.replaced_images(pod).items()
    )


def _is_replaced(status: ReadOnlyTree, image_id: str, image: str) -> bool:
    return (status.get("imageID") or "") != image_id or _with_tag(status.get("image") or "") == _with_tag(
        image
    )


def _with_tag(image: str) -> str:
    return image if ":" in image else f"{image}:latest"


# --- transitions


def start_update(
    pod: PodView, request: UpdateRequest, now: datetime, event: EventTemplate | None = None
) -> tuple[Patch, ...]:
    """Return the patches that start an update: first they close the gate, so that the pod receives no traffic."""
    is_out_of_service = conditions.is_false(pod.object, GATE) and not pod.is_ready
    has_open_gate = readiness.has_gate(pod.object, GATE) and not is_out_of_service
    gate_patches = (_close_gate(pod, now),) if has_open_gate else ()
    change = request.change
    labels = {**request.labels, **lifecycle.labels_of(LifecycleState.UPDATING)}
    annotations: dict[str, str | None] = {**lifecycle.annotations_of(now)}
    metadata: dict[str, Mapping[str, str | None]] = {"labels": labels, "annotations": annotations}
    if request.grace_seconds > 0:
        annotations[record.ANNOTATION_STATE] = record.delayed_state_text(pod, change, now)
        annotations[record.ANNOTATION_GRACE] = record.delayed_change_text(change, request.grace_seconds)
        return (*gate_patches, _patch(pod, metadata, {}, event))
    return (*gate_patches, _update_patch(pod, change, (now, now), metadata, event))


def next_step(pod: PodView, now: datetime, *, revision: str) -> PodStep:
    """Return the next step of a pod's update: apply a delayed change, or open the gate. `revision` is that of the pod."""
    if record.has_delayed_change(pod):
        return _delayed_change_step(pod, now, revision)
    if not _runs_new_images(pod):
        return NO_STEP
    if record.remaining_images(pod):
        return _next_batch_step(pod, now)
    if not readiness.has_gate(pod.object, GATE) or conditions.is_true(pod.object, GATE):
        return NO_STEP
    return PodStep(
        patches=(readiness.readiness_patch(pod, readiness.condition(pod, GATE, {"status": "True"}, now)),)
    )


def _next_batch_step(pod: PodView, now: datetime) -> PodStep:
    if not record.is_ready_for_next_batch(pod):
        return NO_STEP
    batch = record.next_batch(pod)
    annotations = {record.ANNOTATION_STATE: record.next_state_text(pod, batch, now)}
    return PodStep(patches=(_patch(pod, {"annotations": annotations}, _spec(batch.images)),))


def _delayed_change_step(pod: PodView, now: datetime, revision: str) -> PodStep:
    delayed = record.delayed_change(pod)
    if delayed is None or delayed.change.revision != revision:
        annotations = {record.ANNOTATION_GRACE: None}  # the controller decides on the update again
        return PodStep(patches=(_patch(pod, {"annotations": annotations}, {}),))
    due = record.grace_period_end(pod, delayed)
    if due is not None and due > now:
        return PodStep(requeue_after=due - now)
    started_at = record.update_time(pod) or now
    metadata = {"annotations": {record.ANNOTATION_GRACE: None}}
    return PodStep(patches=(_update_patch(pod, delayed.change, (started_at, now), metadata),))


def _update_patch(
    pod: PodView,
    change: TemplateChange,
    times: tuple[datetime, datetime],
    metadata: Mapping[str, Mapping[str, str | None]],
    event: EventTemplate | None = None,
) -> Patch:
    """Return the patch that applies a change. Labels of the workload and the record override those of the template.

    `times` are the start of the update and the present.
    """
    batch = record.first_batch(pod, change)
    state = {record.ANNOTATION_STATE: record.state_text(pod, change, batch, *times)}
    new_metadata = {
        "labels": {**change.labels, **metadata.get("labels", {})},
        "annotations": {**change.annotations, **metadata["annotations"], **state},
    }
    return _patch(pod, new_metadata, _spec(batch.images), event)


def _spec(images: Mapping[str, str]) -> ReadOnlyTree:
    containers = [{"name": name, "image": image} for name, image in images.items()]
    return {"spec": {"containers": containers}} if containers else {}


def _patch(
    pod: PodView, metadata: ReadOnlyTree, rest: ReadOnlyTree, event: EventTemplate | None = None
) -> Patch:
    body = {"metadata": {"uid": pod.uid, **metadata}, **rest}
    return Patch(resource=PODS, key=pod.key, kind="strategic", body=body, event=event)


# --- the gate


def _close_gate(pod: PodView, now: datetime) -> Patch:
    gate_conditions = [
        readiness.condition(pod, GATE, {"status": "False", "reason": "StartInPlaceUpdate"}, now)
    ]
    if pod.is_ready:  # the kubelet sets the condition when the pod is ready again
        gate_conditions.append(
            readiness.condition(pod, CONDITION_READY, {"status": "False", **_NOT_READY}, now)
        )
    return readiness.readiness_patch(pod, *gate_conditions)


# --- steps of a pod with lifecycle hooks


def observe_pod(
    pod: PodView, hooks: Lifecycle, now: datetime, *, revision: str, desired_revision: str
) -> PodStep:
    """Return the step that continues a pod's update and lifecycle. `revision` is that of the pod."""
    pod_step = next_step(pod, now, revision=revision)
    is_done = is_finished(pod)
    state = lifecycle.next_state(pod, hooks, is_updated=revision == desired_revision, is_finished=is_done)
    state_patches = () if state is None else readiness.move_to_state(pod, state, hooks, now)
    patches = (*pod_step.patches, *readiness.open_new_gate(pod, now), *state_patches)
    return PodStep(patches=patches, requeue_after=pod_step.requeue_after)


def start_or_prepare_update(
    pod: PodView, hooks: Lifecycle, request: UpdateRequest, now: datetime, event: EventTemplate
) -> tuple[Patch, ...]:
    """Return the patches that start an update, or prepare a pod with a hook, which waits until the hook is released."""
    hook, state = hooks.in_place_update, lifecycle.state_of(pod)
    if hook is not None:
        if state == LifecycleState.UPDATED:
            return readiness.hold_in_state(pod, LifecycleState.PREPARING_UPDATE, hooks, now)
        if state == LifecycleState.PREPARING_UPDATE and hook.holds(pod):
            return ()
        if state != LifecycleState.UPDATING and hook.holds(pod):
            return readiness.move_to_state(pod, LifecycleState.PREPARING_UPDATE, hooks, now)
    return start_update(pod, request, now, event)

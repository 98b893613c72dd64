"""One pod's next step in an update in place, with the hooks that may hold it."""

from collections.abc import Iterable
from datetime import datetime

from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, update
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from mockube.controller_manager.workloads.inplace.update import Order, Step


def observe_pod(
    pod: PodView, hooks: Lifecycle, now: datetime, *, revision: str, desired_revision: str
) -> Step:
    """Continue the pod's update and lifecycle; `revision` is that of the pod."""
    step = update.step(pod, now, revision=revision)
    finished = update.is_finished(pod)
    state = lifecycle.next_state(pod, hooks, is_updated=revision == desired_revision, is_finished=finished)
    moved = () if state is None else readiness.move(pod, state, hooks, now)
    patches = (*step.patches, *readiness.open_new_gate(pod, now), *moved)
    return Step(patches=patches, again_after=step.again_after)


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
    return update.begin(pod, order, now, event)


def patches_without_gates(
    step_patches: Iterable[Patch], update_patches: Iterable[Patch]
) -> tuple[Patch, ...]:
    """Return the pods' patches without the gate patches of pods whose update starts now.

    A gate that was closed for a change that failed stays closed: else it would open and close for ever.
    """
    changing = {patch.key for patch in update_patches}
    return tuple(patch for patch in step_patches if not (patch.subresource and patch.key in changing))

"""One pod's next step in an update in place, with the hooks that may hold it."""

from datetime import datetime

from controller_manager.runtime.actions import Patch, Saying
from controller_manager.workloads.inplace import lifecycle, update
from controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from controller_manager.workloads.inplace.update import Order, Step
from controller_manager.workloads.podview import PodView


def tended(pod: PodView, hooks: Lifecycle, now: datetime, *, revision: str, wanted: str) -> Step:
    """What the pod has come to by itself: known by one revision, while another may be wanted."""
    step = update.step(pod, now, revision=revision)
    finished = update.is_finished(pod)
    state = lifecycle.next_state(pod, hooks, is_updated=revision == wanted, is_finished=finished)
    if state is None:
        return step
    return Step(patches=(*step.patches, lifecycle.move(pod, state, now)), again_after=step.again_after)


def changed(pod: PodView, hooks: Lifecycle, order: Order, now: datetime, saying: Saying) -> tuple[Patch, ...]:
    """A pod that a hook holds is prepared first, and waits until it lets go."""
    hook, state = hooks.in_place_update, lifecycle.state_of(pod)
    if hook is not None:
        if state == State.UPDATED:
            return (lifecycle.held(pod, hook, State.PREPARING_UPDATE, now),)
        if state == State.PREPARING_UPDATE and hook.holds(pod):
            return ()
        if state != State.UPDATING and hook.holds(pod):
            return (lifecycle.move(pod, State.PREPARING_UPDATE, now),)
    return update.begin(pod, order, now, saying)

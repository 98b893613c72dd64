"""The update of one outdated pod of an advanced set to the newest revision."""

from enum import Enum, auto
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.controllers.kruise.advancedstatefulset.strategy import Policy, Strategy
from mockube.controller_manager.workloads.inplace import lifecycle, next_step, update
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from mockube.controller_manager.workloads.inplace.record import Change, change_between
from mockube.controller_manager.workloads.stateful import identity
from mockube.controller_manager.workloads.stateful.state import StatefulSetState


class Way(Enum):
    IN_PLACE = auto()
    ANEW = auto()
    REFUSED = auto()
    """The pod must be updated in place, and cannot be: the rollout stops here."""


class UpdateStep(NamedTuple):
    way: Way
    patches: tuple[Patch, ...] = ()


def update_step(state: StatefulSetState, strategy: Strategy, pod: PodView) -> UpdateStep:
    if strategy.policy is Policy.RECREATE:
        return UpdateStep(Way.ANEW)
    change = _change(state, pod)
    if change is None:
        return UpdateStep(Way.REFUSED if strategy.policy is Policy.IN_PLACE_ONLY else Way.ANEW)
    if lifecycle.state_of(pod) == State.PREPARING_DELETE:
        return UpdateStep(Way.REFUSED)
    order = update.Order(
        change=change,
        labels={LABEL_CONTROLLER_REVISION_HASH: state.update_name},
        grace_seconds=strategy.grace_seconds,
    )
    hooks = Lifecycle.of(state.owner.object["spec"])
    return UpdateStep(
        Way.IN_PLACE, next_step.change_pod(pod, hooks, order, state.now, _event_template(state))
    )


def _change(state: StatefulSetState, pod: PodView) -> Change | None:
    """None also if the pod's revision is no longer in the history."""
    name = identity.revision_of(pod)
    old = next((revision for revision in state.history if meta.name(revision) == name), None)
    if old is None:
        return None
    return change_between(identity.template_of(old), identity.template_of(state.update), state.update_name)


def _event_template(state: StatefulSetState) -> EventTemplate:
    subject = f"update pod {{name}} in-place(revision {state.update_name})"
    return EventTemplate(
        about=state.owner.object,
        done=("SuccessfulUpdatePodInPlace", f"successfully {subject}"),
        failed=("FailedUpdatePodInPlace", f"failed to {subject}: {{error}}"),
    )

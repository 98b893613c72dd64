"""How one outdated pod of an advanced set comes to the newest revision."""

from enum import Enum, auto
from typing import NamedTuple

from apimachinery import meta
from apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from controller_manager.controllers.advancedstatefulset.strategy import Policy, Strategy
from controller_manager.runtime.actions import Patch, Saying
from controller_manager.workloads.inplace import lifecycle, update
from controller_manager.workloads.inplace import turn as turns
from controller_manager.workloads.inplace.change import Change, change_between
from controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import identity
from controller_manager.workloads.stateful.scene import Scene


class Way(Enum):
    IN_PLACE = auto()
    ANEW = auto()
    REFUSED = auto()
    """It must be in place, and cannot: the update goes no further."""


class Turn(NamedTuple):
    way: Way
    patches: tuple[Patch, ...] = ()


def turn(scene: Scene, strategy: Strategy, pod: PodView) -> Turn:
    if strategy.policy is Policy.RECREATE:
        return Turn(Way.ANEW)
    change = _change(scene, pod)
    if change is None:
        return Turn(Way.REFUSED if strategy.policy is Policy.IN_PLACE_ONLY else Way.ANEW)
    if lifecycle.state_of(pod) == State.PREPARING_DELETE:
        return Turn(Way.REFUSED)
    order = update.Order(
        change=change,
        labels={LABEL_CONTROLLER_REVISION_HASH: scene.update_name},
        grace_seconds=strategy.grace_seconds,
    )
    hooks = Lifecycle.of(scene.owner.object["spec"])
    return Turn(Way.IN_PLACE, turns.changed(pod, hooks, order, scene.now, _saying(scene)))


def _change(scene: Scene, pod: PodView) -> Change | None:
    """None also if nobody remembers what the pod was made from."""
    name = identity.revision_of(pod)
    old = next((it for it in scene.history if meta.name(it) == name), None)
    if old is None:
        return None
    return change_between(identity.template_of(old), identity.template_of(scene.update), scene.update_name)


def _saying(scene: Scene) -> Saying:
    subject = f"update pod {{name}} in-place(revision {scene.update_name})"
    return Saying(
        about=scene.owner.object,
        done=("SuccessfulUpdatePodInPlace", f"successfully {subject}"),
        failed=("FailedUpdatePodInPlace", f"failed to {subject}: {{error}}"),
    )

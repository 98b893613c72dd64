"""Bring a set to its pods: fill the slots, take away the condemned, each in its order.

In order, a pod is only touched while all before it run and are available; in parallel nothing waits. Either step may
end the round before the next, and before outdated pods are looked at.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from controller_manager import kinds
from controller_manager.runtime.actions import Action, Say, Update
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PENDING, PodView
from controller_manager.workloads.stateful import effects, identity, storage
from controller_manager.workloads.stateful.scene import Scene, Slot


class Scaled(NamedTuple):
    actions: tuple[Action, ...]
    ended: bool
    """No further pod comes or goes in this round,"""
    halted: bool
    """nor is one updated."""


class _Step(NamedTuple):
    """What is done about one pod. The round ends with a step that halts, if pods are taken in order."""

    halts: bool
    before: tuple[Action, ...] = ()
    """About its claims, or about itself."""
    made: Tree | None = None
    gone: PodView | None = None
    blocks: bool = False
    """The round ends with it in parallel, too."""
    updates: bool = False
    """But pods may be updated, since that is what this one waits for."""


def scaled(scene: Scene) -> Scaled:
    filled = _walked(scene, (_slot_step(scene, slot) for slot in scene.slots), scene.owner.scale_limit)
    if filled.ended:
        return filled
    cleared = _walked(scene, _condemned_steps(scene), None)
    return cleared._replace(actions=(*filled.actions, *cleared.actions))


def _walked(scene: Scene, steps: Iterable[_Step], room: int | None) -> Scaled:
    """The actions of the steps up to the first that ends the round, or until so many pods are not available."""
    taken: list[_Step] = []
    ended = halted = False
    for step in steps:
        taken.append(step)
        ended = step.halts and (step.blocks or not scene.owner.parallel)
        halted = ended and not step.updates
        room = room - 1 if room is not None and step.halts else room
        if ended or room == 0:
            break
    before = [action for step in taken for action in step.before]
    gone = [step.gone for step in taken if step.gone is not None]
    made = [step.made for step in taken if step.made is not None]
    actions = (*before, *effects.deletion(scene.owner, gone), *effects.creation(scene.owner, made))
    return Scaled(actions, ended, halted)


def _going(scene: Scene, pod: PodView, *, blocks: bool = False) -> _Step:
    """It goes, unless somebody holds it: then he is told."""
    held = scene.customs.held(pod)
    if held is None:
        return _Step(halts=True, gone=pod, blocks=blocks)
    return _Step(halts=True, before=held, blocks=blocks)


# --- filling the slots


def _slot_step(scene: Scene, slot: Slot) -> _Step:
    pod = slot.pod
    if pod is None:
        return _creation(scene, slot.ordinal)
    if pod.is_terminal:
        # A pod that ended is replaced whatever its exit code; the new one is made once this one is gone.
        blocks = scene.owner.waits_for_ended
        return _Step(halts=True, blocks=blocks) if pod.deleting else _going(scene, pod, blocks=blocks)
    halts = scene.is_unavailable(pod)
    stored = _stored(scene, slot.ordinal, pod)
    waiting = pod.deleting or (halts and not scene.owner.parallel)
    before = stored if waiting else (*stored, *_restoration(scene, slot.ordinal, pod))
    updates = scene.is_outdated(pod) and scene.customs.is_prepared(pod)
    return _Step(halts=halts, before=before, updates=updates)


def _creation(scene: Scene, ordinal: int) -> _Step:
    owner = scene.owner
    blocks = owner.waits_for_ended
    if storage.is_stale(owner, ordinal, scene.claims):
        return _Step(halts=True, blocks=blocks)
    ending = storage.ending(owner, ordinal, scene.claims)
    if ending:
        name = identity.pod_name(owner, ordinal)
        problem = (
            f"create Pod {name} in StatefulSet {owner.key.name} failed error: pvc {ending} is being deleted"
        )
        failed = Say(about=owner.object, type="Warning", reason="FailedCreate", message=problem)
        return _Step(halts=True, before=(failed,), blocks=blocks)
    pod = scene.customs.born(identity.new_pod(owner, ordinal, scene.revision_for(ordinal)))
    return _Step(halts=True, before=storage.missing(owner, ordinal, scene.claims), made=pod)


def _stored(scene: Scene, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    wanting = pod.phase == PENDING and not pod.deleting
    missing = storage.missing(scene.owner, ordinal, scene.claims) if wanting else ()
    return (*missing, *storage.retention(scene.owner, pod, ordinal, scene.claims))


def _restoration(scene: Scene, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    owner = scene.owner
    if identity.matches(owner, pod, ordinal):
        return ()
    missing = storage.missing(owner, ordinal, scene.claims)
    body = identity.restored(owner, pod, ordinal)
    return (*missing, Update(resource=kinds.PODS, body=body, saying=effects.saying(owner, "update")))


# --- taking away the condemned


def _condemned_steps(scene: Scene) -> Iterator[_Step]:
    """Claims first, so that they are sure to go with their pods; then the pods, the highest ordinal first."""
    for pod in scene.condemned:
        claims = storage.retention(scene.owner, pod, _ordinal(scene, pod), scene.claims)
        yield _Step(halts=False, before=claims)
    first = _first_unavailable(scene)
    for pod in scene.condemned:
        waits = not scene.owner.parallel and scene.is_unavailable(pod) and pod is not first
        yield _Step(halts=True) if pod.deleting or waits else _going(scene, pod)


def _first_unavailable(scene: Scene) -> PodView | None:
    """The pod that the others wait for: only it may go while it is not available."""
    ordered = (*(slot.pod for slot in scene.slots), *reversed(scene.condemned))
    return next((pod for pod in ordered if scene.is_unavailable(pod)), None)


def _ordinal(scene: Scene, pod: PodView) -> int:
    ordinal = identity.ordinal_in(scene.owner, pod.key.name)
    assert ordinal is not None  # the scene holds no pods of other names
    return ordinal

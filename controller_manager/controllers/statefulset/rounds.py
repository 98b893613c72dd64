"""One round of a StatefulSet: which pods come, are mended and go, in their order.

Three steps, each of which may end the round: fill the slots, take away the condemned, replace what is outdated. In
order, a pod is only touched while all before it run and are available; in parallel nothing waits but the update.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apimachinery import intstr
from controller_manager import kinds
from controller_manager.controllers.statefulset import identity, storage
from controller_manager.controllers.statefulset.scene import Scene, Slot
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.runtime.actions import Action, Create, Delete, Say, Saying, Update, Victim
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PENDING, PodView


class Round(NamedTuple):
    actions: tuple[Action, ...]
    replaced: tuple[PodView, ...] = ()
    """The pods that go because they are outdated."""


class _Step(NamedTuple):
    """What is done about one pod. The round ends with a step that halts, if pods are taken in order."""

    halts: bool
    before: tuple[Action, ...] = ()
    """About its claims, or about itself."""
    made: Tree | None = None
    gone: PodView | None = None


def plan(scene: Scene) -> Round:
    filled, halted = _walked(scene.owner, (_slot_step(scene, slot) for slot in scene.slots))
    if halted:
        return Round(filled)
    cleared, halted = _walked(scene.owner, _condemned_steps(scene))
    if halted or scene.owner.on_delete:
        return Round((*filled, *cleared))
    victims = _outdated(scene)
    return Round((*filled, *cleared, *_deletion(scene.owner, victims)), tuple(victims))


def _walked(owner: SetView, steps: Iterator[_Step]) -> tuple[tuple[Action, ...], bool]:
    """The actions of the steps up to the first that ends the round, and whether one did."""
    taken: list[_Step] = []
    for step in steps:
        taken.append(step)
        if step.halts and not owner.parallel:
            break
    before = [action for step in taken for action in step.before]
    gone = [step.gone for step in taken if step.gone is not None]
    made = [step.made for step in taken if step.made is not None]
    halted = bool(taken) and taken[-1].halts and not owner.parallel
    return (*before, *_deletion(owner, gone), *_pod_creation(owner, made)), halted


# --- filling the slots


def _slot_step(scene: Scene, slot: Slot) -> _Step:
    pod = slot.pod
    if pod is None:
        return _creation(scene, slot.ordinal)
    if pod.is_terminal:
        # A pod that ended is replaced whatever its exit code; the new one is made once this one is gone.
        return _Step(halts=True, gone=None if pod.deleting else pod)
    halts = scene.is_unavailable(pod)
    stored = _stored(scene, slot.ordinal, pod)
    waiting = pod.deleting or (halts and not scene.owner.parallel)
    return _Step(halts, stored if waiting else (*stored, *_restoration(scene, slot.ordinal, pod)))


def _creation(scene: Scene, ordinal: int) -> _Step:
    owner = scene.owner
    if storage.is_stale(owner, ordinal, scene.claims):
        return _Step(halts=True)
    ending = storage.ending(owner, ordinal, scene.claims)
    if ending:
        name = identity.pod_name(owner, ordinal)
        problem = (
            f"create Pod {name} in StatefulSet {owner.key.name} failed error: pvc {ending} is being deleted"
        )
        failed = Say(about=owner.object, type="Warning", reason="FailedCreate", message=problem)
        return _Step(halts=True, before=(failed,))
    pod = identity.new_pod(owner, ordinal, scene.revision_for(ordinal))
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
    return (*missing, Update(resource=kinds.PODS, body=body, saying=_saying(owner, "update")))


# --- taking away the condemned


def _condemned_steps(scene: Scene) -> Iterator[_Step]:
    """Claims first, so that they are sure to go with their pods; then the pods, the highest ordinal first."""
    for pod in scene.condemned:
        claims = storage.retention(scene.owner, pod, _ordinal(scene, pod), scene.claims)
        yield _Step(halts=False, before=claims)
    first = _first_unavailable(scene)
    for pod in scene.condemned:
        waits = not scene.owner.parallel and scene.is_unavailable(pod) and pod is not first
        yield _Step(halts=True, gone=None if pod.deleting or waits else pod)


def _first_unavailable(scene: Scene) -> PodView | None:
    """The pod that the others wait for: only it may go while it is not available."""
    ordered = (*(slot.pod for slot in scene.slots), *reversed(scene.condemned))
    return next((pod for pod in ordered if scene.is_unavailable(pod)), None)


def _ordinal(scene: Scene, pod: PodView) -> int:
    ordinal = identity.ordinal_in(scene.owner, pod.key.name)
    assert ordinal is not None  # the scene holds no pods of other names
    return ordinal


# --- replacing what is outdated


def _outdated(scene: Scene) -> list[PodView]:
    """The pods that make room for the update now, the highest ordinal first."""
    if scene.owner.max_unavailable is None:
        return _next_outdated(scene)
    candidates = [slot.pod for slot in _rolling_slots(scene) if slot.pod and scene.is_outdated(slot.pod)]
    room = _most_unavailable(scene.owner) - sum(scene.is_unavailable(slot.pod) for slot in scene.slots)
    if not scene.owner.parallel:
        return candidates[: max(room, 0)]
    # What is unavailable anyway costs nothing to replace; in parallel nobody has waited for it.
    free = [pod for pod in candidates if scene.is_unavailable(pod)]
    costly = [pod for pod in candidates if not scene.is_unavailable(pod)]
    return free + costly[: max(room, 0)]


def _next_outdated(scene: Scene) -> list[PodView]:
    """One at a time; an updated pod that is not available holds up those below it."""
    for slot in _rolling_slots(scene):
        if slot.pod is not None and scene.is_outdated(slot.pod):
            return [slot.pod]
        if scene.is_unavailable(slot.pod):
            break
    return []


def _rolling_slots(scene: Scene) -> list[Slot]:
    """From the highest ordinal down to the partition, which counts from the first pod."""
    kept = scene.owner.partition or 0
    return [*reversed(scene.slots[kept:])]


def _most_unavailable(owner: SetView) -> int:
    limit = 1 if owner.max_unavailable is None else owner.max_unavailable
    return max(intstr.scaled(limit, owner.replicas, round_up=False), 1)


# --- effects on pods


def _pod_creation(owner: SetView, bodies: Sequence[Tree]) -> tuple[Action, ...]:
    if not bodies:
        return ()
    return (Create(resource=kinds.PODS, bodies=tuple(bodies), saying=_saying(owner, "create")),)


def _deletion(owner: SetView, pods: Sequence[PodView]) -> tuple[Action, ...]:
    if not pods:
        return ()
    victims = tuple(Victim(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=kinds.PODS, victims=victims, saying=_saying(owner, "delete")),)


def _saying(owner: SetView, verb: str) -> Saying:
    subject = f"{verb} Pod {{name}} in StatefulSet {owner.key.name}"
    return Saying(
        about=owner.object,
        done=(f"Successful{verb.title()}", f"{subject} successful"),
        failed=(f"Failed{verb.title()}", f"{subject} failed error: {{error}}"),
    )

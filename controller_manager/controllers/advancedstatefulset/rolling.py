"""Which pods of an advanced set get the newest revision now, and how: in place, or by being made anew.

Those that somebody marked for deletion go by the same limit, and before.
"""

from collections.abc import Iterable, Iterator, Sequence

from apimachinery.wellknown import LABEL_SPECIFIED_DELETE
from controller_manager.controllers.advancedstatefulset import inplace
from controller_manager.controllers.advancedstatefulset.inplace import Way
from controller_manager.controllers.advancedstatefulset.strategy import Strategy
from controller_manager.runtime.actions import Action
from controller_manager.workloads.inplace import record, update
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import effects, identity
from controller_manager.workloads.stateful.reconciliation import Rolled
from controller_manager.workloads.stateful.scene import Scene
from controller_manager.workloads.update_order import by_priority


class _Room:
    """Who may be down. Those that are so already take the places first."""

    def __init__(self, limit: int, down: Iterable[str]) -> None:
        self._limit = limit
        self._down = {*down}

    def admits(self, pod: PodView) -> bool:
        name = pod.key.name
        if name not in self._down and len(self._down) >= self._limit:
            return False
        self._down.add(name)
        return True


def roll(scene: Scene) -> Rolled:
    strategy = Strategy.of(scene.owner.object["spec"])
    if scene.owner.on_delete or strategy.paused:
        return Rolled()
    room = _Room(strategy.max_unavailable, _down(scene))
    named = [pod for pod in _descending(scene) if _is_named(pod) and room.admits(pod)]
    removed = _removed(scene, named)
    updated = _updated(scene, strategy, room, named)
    return Rolled((*removed.actions, *updated.actions), (*removed.replaced, *updated.replaced))


def _down(scene: Scene) -> Iterator[str]:
    for slot in scene.slots:
        pod = slot.pod
        if pod is None or scene.is_unavailable(pod) or not update.is_finished(pod):
            yield identity.pod_name(scene.owner, slot.ordinal)


def _is_named(pod: PodView) -> bool:
    return LABEL_SPECIFIED_DELETE in pod.labels and not pod.deleting


def _descending(scene: Scene) -> list[PodView]:
    return [slot.pod for slot in reversed(scene.slots) if slot.pod is not None]


# --- in which order


def in_order(scene: Scene, strategy: Strategy) -> list[PodView]:
    """The pods that the partition leaves to the update, those already updated among them."""
    if not strategy.unordered:
        return [slot.pod for slot in reversed(scene.slots[strategy.kept :]) if slot.pod is not None]
    pods = _descending(scene)
    waiting = [pod for pod in pods if scene.is_outdated(pod)]
    others = [pod for pod in pods if not scene.is_outdated(pod)]
    coming = sum(slot.pod is None and slot.ordinal not in scene.kept for slot in scene.slots)
    count = max(len(scene.slots) - strategy.kept - coming, 0)
    return [*others, *by_priority(waiting, strategy.priority)][:count]


# --- what is done


def _updated(scene: Scene, strategy: Strategy, room: _Room, named: Sequence[PodView]) -> Rolled:
    patches: list[Action] = []
    in_place: list[PodView] = []
    anew: list[PodView] = []
    for pod in in_order(scene, strategy):
        if not scene.is_outdated(pod):
            continue
        if not room.admits(pod):
            break
        if pod in named or record.is_waiting(pod):
            continue  # what is about to change is changed again when it has
        turn = inplace.turn(scene, strategy, pod)
        if turn.way is Way.REFUSED:
            break
        patches += turn.patches
        (in_place if turn.way is Way.IN_PLACE else anew).append(pod)
    removed = _removed(scene, anew)
    return Rolled((*patches, *removed.actions), (*in_place, *removed.replaced))


def _removed(scene: Scene, pods: Sequence[PodView]) -> Rolled:
    """They go, but those that somebody holds, who is told."""
    held = {pod: scene.customs.held(pod) for pod in pods}
    going = tuple(pod for pod, patches in held.items() if patches is None)
    patches = [patch for found in held.values() if found is not None for patch in found]
    return Rolled((*patches, *effects.deletion(scene.owner, going)), going)

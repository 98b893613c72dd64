"""Which outdated pods of a StatefulSet make room for the update."""

from apimachinery import intstr
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import effects
from controller_manager.workloads.stateful.reconciliation import Rolled
from controller_manager.workloads.stateful.scene import Scene, Slot
from controller_manager.workloads.stateful.setview import SetView


def roll(scene: Scene) -> Rolled:
    if scene.owner.on_delete:
        return Rolled()
    victims = _outdated(scene)
    return Rolled(effects.deletion(scene.owner, victims), tuple(victims))


def _outdated(scene: Scene) -> list[PodView]:
    """The pods that make room now, the highest ordinal first."""
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

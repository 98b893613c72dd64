"""What each subset is to be: its share of the pods, its partition, and its patch."""

from collections.abc import Mapping

from controller_manager.controllers.uniteddeployment import reservation
from controller_manager.controllers.uniteddeployment.allocation import choice
from controller_manager.controllers.uniteddeployment.allocation.place import Place
from controller_manager.controllers.uniteddeployment.partitions import partitions
from controller_manager.controllers.uniteddeployment.scene import Scene
from controller_manager.controllers.uniteddeployment.standing import FREE, Standing
from controller_manager.controllers.uniteddeployment.views import SubsetSpec
from controller_manager.controllers.uniteddeployment.workload import Goal


def goals(scene: Scene) -> Mapping[str, Goal]:
    """In the order of the topology. Or `AllocationError`."""
    view, schedule = scene.view, scene.view.schedule
    places = [_place(scene, subset) for subset in view.subsets]
    shares = choice.allocate(view.replicas, places, adapts=schedule.is_adaptive, reserves=schedule.reserves)
    kept = partitions(view.partitions, shares)
    return {
        subset.name: Goal(
            subset=subset,
            revision=scene.history.expected,
            replicas=shares[subset.name],
            partition=kept[subset.name],
            max_unavailable=_max_unavailable(scene, subset.name),
        )
        for subset in view.subsets
    }


def _place(scene: Scene, spec: SubsetSpec) -> Place:
    subset, standing = scene.subsets.get(spec.name), scene.standings.get(spec.name, FREE)
    return Place(
        name=spec.name,
        replicas=spec.replicas,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        exists=subset is not None,
        current=subset.spec_replicas if subset else 0,
        ready=subset.ready_replicas if subset else 0,
        unschedulable=standing.unschedulable,
        marked=standing.marked,
        reserved=standing.reserved,
    )


def _max_unavailable(scene: Scene, name: str) -> int | None:
    """Pods that cannot run shall not hold up the update of those that can: as many may be missing as are."""
    subset, standing = scene.subsets.get(name), scene.standings.get(name, FREE)
    if subset is None or not (scene.view.schedule.reserves and standing.unschedulable):
        return None
    missing = subset.spec_replicas - subset.ready_replicas + standing.overdue
    return missing if missing > 0 else None


def settled_standings(scene: Scene, goals: Mapping[str, Goal]) -> Mapping[str, Standing]:
    """With what the shares make of them."""
    if not scene.view.schedule.reserves:
        return scene.standings
    return {
        name: reservation.grown(standing, scene.now) if _recovers_and_grows(scene, goals, name) else standing
        for name, standing in scene.standings.items()
    }


def _recovers_and_grows(scene: Scene, goals: Mapping[str, Goal], name: str) -> bool:
    subset, goal, standing = scene.subsets.get(name), goals.get(name), scene.standings[name]
    if subset is None or goal is None or standing.unschedulable or not standing.marked:
        return False
    return goal.replicas > subset.spec_replicas

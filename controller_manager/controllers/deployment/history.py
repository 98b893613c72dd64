"""Forget the oldest versions of a Deployment: delete the ReplicaSets beyond its history limit."""

from controller_manager.controllers.deployment.observe import Scene
from controller_manager.controllers.deployment.views import SetView
from controller_manager.kinds import REPLICA_SETS
from controller_manager.runtime.actions import Delete
from controller_manager.workloads.claims import victim


def forgotten(scene: Scene) -> tuple[Delete, ...]:
    limit = scene.deployment.history_limit
    if limit is None:
        return ()
    past = sorted((old for old in scene.olds if not old.deleting), key=lambda old: (old.revision, old.age))
    surplus = past[: max(len(past) - limit, 0)]
    victims = tuple(victim(REPLICA_SETS, old.object) for old in surplus if _is_idle(old))
    return (Delete(resource=REPLICA_SETS, victims=victims),) if victims else ()


def _is_idle(old: SetView) -> bool:
    return old.replicas == 0 and old.reported == 0 and old.is_observed

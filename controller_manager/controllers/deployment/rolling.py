"""Roll a Deployment: how large its new ReplicaSet may be now, and how small its old ones.

Pure arithmetic on the sets' spec and reported replicas. After a set was scaled down, and before its controller has
acted, the pods that it is about to delete count against both bounds: they still exist, and are not available.
"""

from collections.abc import Sequence

from mockube.controller_manager.controllers.deployment.observe import DeploymentState
from mockube.controller_manager.controllers.deployment.scaling import Sizes
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView


def size_of_new(deployment: DeploymentView, current: int, old_sets: Sequence[SetView]) -> int:
    """Return the replicas of the new set: the desired number, as far as all pods together stay within the surge.

    Upstream does not wait until the old sets have deleted their pods, and may have more pods for a moment.
    """
    if not deployment.rolls:
        return deployment.replicas
    remaining = deployment.max_replicas - current - sum(old.possible_pods for old in old_sets)
    return min(current + max(remaining, 0), deployment.replicas)


def sizes_of_old(state: DeploymentState) -> Sizes:
    """The sizes of the old sets, once the new one is as large as it may be.

    Unavailable pods are deleted first: they would block the rollout for ever. Then others, the oldest set's first, as
    long as enough pods stay available.
    """
    new = state.new
    assert new is not None
    unavailable = new.replicas - new.available_after_scaling
    removable = (
        sum(replica_set.replicas for replica_set in state.sets) - state.deployment.min_available - unavailable
    )
    if removable <= 0:
        return {}
    healthier = _without_unhealthy(state.old_sets, removable)
    lasting = new.available_after_scaling + sum(
        min(old.available, healthier[old.name]) for old in state.old_sets
    )
    return _reduce(healthier, lasting - state.deployment.min_available)


def _without_unhealthy(old_sets: Sequence[SetView], count: int) -> dict[str, int]:
    sizes = {}
    for old in old_sets:
        going = min(old.replicas - old.available_after_scaling, count)
        sizes[old.name] = old.replicas - going
        count -= going
    return sizes


def _reduce(sizes: Sizes, count: int) -> Sizes:
    smaller = {}
    for name, size in sizes.items():
        going = min(size, max(count, 0))
        smaller[name] = size - going
        count -= going
    return smaller

"""A step of a rollout, RollingUpdate or Recreate: which ReplicaSets are resized now.

Pure arithmetic on the sets' spec and reported replicas. After a set was scaled down, and before its controller has
acted, the pods that are about to be deleted count against both bounds: they still exist, and are not available.
"""

from collections.abc import Sequence

from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.deployment.revision import resize_actions
from mockube.controller_manager.controllers.deployment.state import (
    DeploymentState,
    DeploymentView,
    SetView,
    Sizes,
)


def rolling_update_actions(state: DeploymentState) -> tuple[Update, ...]:
    """Scale up the new set if the surge allows it, or else scale down the old ones."""
    new, deployment = state.new, state.deployment
    assert new is not None
    size = new_set_size(deployment, new.replicas, state.old_sets)
    scale_up = resize_actions(deployment, (new,), {new.name: size})
    return scale_up or resize_actions(deployment, state.old_sets, old_set_sizes(state))


def recreate_actions(state: DeploymentState) -> tuple[Update, ...]:
    """Scale down the old sets, and scale up the new one when their pods have ended."""
    new, deployment = state.new, state.deployment
    if scale_down := resize_actions(deployment, state.old_sets, {old.name: 0 for old in state.old_sets}):
        return scale_down
    if new is None or state.old_pods_run:
        return ()
    return resize_actions(deployment, (new,), {new.name: deployment.replicas})


def new_set_size(deployment: DeploymentView, current: int, old_sets: Sequence[SetView]) -> int:
    """Return the replicas of the new set: the desired number, as far as all pods together stay within the surge.

    Upstream does not wait until the old sets have deleted their pods, and may have more pods for a moment.
    """
    if not deployment.is_rolling_update:
        return deployment.replicas
    remaining = deployment.max_replicas - current - sum(old.possible_pods for old in old_sets)
    return min(current + max(remaining, 0), deployment.replicas)


def old_set_sizes(state: DeploymentState) -> Sizes:
    """Return the sizes of the old sets when the new one is as large as the surge allows.

    Unavailable pods are deleted first: they would block the rollout for ever. Then others, the oldest set's first, as
    long as enough pods remain available.
    """
    new = state.new
    assert new is not None
    unavailable = new.replicas - new.available_after_scaling
    removable = (
        sum(replica_set.replicas for replica_set in state.sets) - state.deployment.min_available - unavailable
    )
    if removable <= 0:
        return {}
    sizes = _without_unavailable(state.old_sets, removable)
    available = new.available_after_scaling + sum(
        min(old.available, sizes[old.name]) for old in state.old_sets
    )
    return _scale_down(sizes, available - state.deployment.min_available)


def _without_unavailable(old_sets: Sequence[SetView], count: int) -> dict[str, int]:
    sizes = {}
    for old in old_sets:
        removed = min(old.replicas - old.available_after_scaling, count)
        sizes[old.name] = old.replicas - removed
        count -= removed
    return sizes


def _scale_down(sizes: Sizes, count: int) -> Sizes:
    smaller = {}
    for name, size in sizes.items():
        removed = min(size, max(count, 0))
        smaller[name] = size - removed
        count -= removed
    return smaller

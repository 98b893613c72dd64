"""Rollouts, RollingUpdate and Recreate: the ReplicaSets that the next step resizes.

It is arithmetic on the spec and the reported replicas. After a set was scaled down, and before its controller has
acted, the pods that are about to be deleted count against both bounds: they still exist, and are not available.
"""

from collections.abc import Sequence

from mockube.controller_manager.control.actions import Update

from .revision import resize_actions
from .state import DeploymentState, DeploymentView, ReplicaSetView, Sizes


def rolling_update_actions(state: DeploymentState) -> tuple[Update, ...]:
    """Return the updates that scale up the new set if maxSurge allows it, or else scale down the old sets."""
    new, deployment = state.new, state.deployment
    assert new is not None
    size = new_set_size(deployment, new.replicas, state.old_sets)
    scale_up = resize_actions(deployment, (new,), {new.name: size})
    return scale_up or resize_actions(deployment, state.old_sets, old_set_sizes(state))


def recreate_actions(state: DeploymentState) -> tuple[Update, ...]:
    """Return the updates that scale down the old sets, or scale up the new one when the old pods have ended."""
    new, deployment = state.new, state.deployment
    if scale_down := resize_actions(deployment, state.old_sets, {old.name: 0 for old in state.old_sets}):
        return scale_down
    if new is None or state.has_running_old_pods:
        return ()
    return resize_actions(deployment, (new,), {new.name: deployment.replicas})


def new_set_size(deployment: DeploymentView, current: int, old_sets: Sequence[ReplicaSetView]) -> int:
    """Return the replicas of the new set: the desired number, or fewer if the pods of all sets would exceed the surge.

    Upstream does not wait until the old sets have deleted their pods, and may have more pods for a moment.
    """
    if not deployment.is_rolling_update:
        return deployment.replicas
    remaining = deployment.max_replicas - current - sum(old.possible_pods for old in old_sets)
    return min(current + max(remaining, 0), deployment.replicas)


def old_set_sizes(state: DeploymentState) -> Sizes:
    """Return the sizes of the old sets when the new one is as large as maxSurge allows.

    Unavailable pods are deleted first: they would block the rollout for ever. Then other pods, the oldest set's first, as
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
    sizes = _sizes_without_unavailable(state.old_sets, removable)
    available = new.available_after_scaling + sum(
        min(old.available, sizes[old.name]) for old in state.old_sets
    )
    return _scale_down(sizes, available - state.deployment.min_available)


def _sizes_without_unavailable(old_sets: Sequence[ReplicaSetView], count: int) -> dict[str, int]:
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

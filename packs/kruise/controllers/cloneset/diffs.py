"""The differences between a CloneSet's pods and its spec: the numbers of pods to create, delete and update."""

from msgspec import Struct

from .spec import CloneSetLimits


class PodCounts(Struct, frozen=True, kw_only=True):
    """The numbers of the update revision's pods, or of all other pods."""

    preparing_delete: int = 0
    """Pods in the lifecycle state PreparingDelete."""
    active: int = 0
    """All other pods."""
    to_delete: int = 0
    """Active pods that are specified for deletion."""
    unavailable: int = 0
    """Unavailable pods among the other active ones."""

    @property
    def total(self) -> int:
        return self.preparing_delete + self.active

    def __add__(self, other: "PodCounts") -> "PodCounts":
        return PodCounts(
            preparing_delete=self.preparing_delete + other.preparing_delete,
            active=self.active + other.active,
            to_delete=self.to_delete + other.to_delete,
            unavailable=self.unavailable + other.unavailable,
        )


class Diffs(Struct, frozen=True, kw_only=True):
    """The numbers of pods to create, delete and update, and their limits; `…_old` is the current revision's part."""

    scale_up: int = 0
    scale_up_old: int = 0
    scale_up_limit: int = 0
    scale_down: int = 0
    scale_down_old: int = 0
    delete_ready_limit: int = 0
    """The number of ready pods that may be deleted."""
    surge: int = 0
    surge_old: int = 0
    update: int = 0
    update_max_unavailable: int = 0


def diffs(limits: CloneSetLimits, new: PodCounts, old: PodCounts) -> Diffs:
    """Return the differences; `new` counts the pods of the update revision. No pod is updated to the current revision."""
    pods = new + old
    unavailable = pods.preparing_delete + pods.unavailable
    outdated = max(old.active - limits.partition, 0)
    missing_updated = max(limits.replicas - limits.partition - new.active, 0)
    surge, surge_old = _surge_counts(limits, new, pods, unavailable, min(outdated, missing_updated))
    update = min(outdated, missing_updated)
    total, total_old = pods.total, old.total
    if limits.excludes_preparing_delete:
        total, total_old = pods.active, old.active
    expected, expected_old = limits.replicas + surge, limits.partition + surge_old
    scale_up = max(expected - total, 0)
    scale_down = max(total - pods.to_delete - expected, 0)
    ready_limit = max(limits.max_unavailable + pods.total - limits.replicas - unavailable, 0)
    return Diffs(
        scale_up=scale_up,
        scale_up_old=max(expected_old - total_old, 0) if scale_up else 0,
        scale_up_limit=_scale_up_limit(limits, scale_up, unavailable),
        scale_down=scale_down,
        scale_down_old=max(total_old - old.to_delete - expected_old, 0) if scale_down else 0,
        delete_ready_limit=ready_limit if pods.to_delete or scale_down else 0,
        surge=surge,
        surge_old=surge_old,
        update=update,
        update_max_unavailable=limits.max_unavailable + pods.total - limits.replicas if update else 0,
    )


def _surge_counts(
    limits: CloneSetLimits, new: PodCounts, pods: PodCounts, unavailable: int, to_update: int
) -> tuple[int, int]:
    """Return the number of surge pods, and how many of them have the current revision.

    Surge pods replace pods to delete or pods to update, whichever are more.
    """
    to_replace = min(max(unavailable + pods.to_delete - limits.max_unavailable, 0), pods.to_delete)
    if to_replace < to_update:
        return min(limits.max_surge, to_update), 0
    surge = min(limits.max_surge, to_replace)
    return surge, min(surge, max(to_replace - new.to_delete, 0))


def _scale_up_limit(limits: CloneSetLimits, scale_up: int, unavailable: int) -> int:
    if limits.scale_max_unavailable is None:
        return scale_up
    return min(scale_up, max(limits.scale_max_unavailable - unavailable, 0))

"""How many pods are too many or too few, of which revision, and how many may be missing meanwhile: arithmetic alone."""

from msgspec import Struct

from mockube.controller_manager.controllers.kruise.cloneset.spec import Limits


class Tally(Struct, frozen=True, kw_only=True):
    """Pods of one revision, or of all the others."""

    preparing_delete: int = 0
    active: int = 0
    """All but those."""
    to_delete: int = 0
    """Active pods that are specified for deletion."""
    unavailable: int = 0
    """Of the other active pods."""

    @property
    def total(self) -> int:
        return self.preparing_delete + self.active

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            preparing_delete=self.preparing_delete + other.preparing_delete,
            active=self.active + other.active,
            to_delete=self.to_delete + other.to_delete,
            unavailable=self.unavailable + other.unavailable,
        )


class Diffs(Struct, frozen=True, kw_only=True):
    """What there is to do, and how far it may go now. `…_old` is the part of the current revision."""

    scale_up: int = 0
    scale_up_old: int = 0
    scale_up_limit: int = 0
    scale_down: int = 0
    scale_down_old: int = 0
    delete_ready_limit: int = 0
    """How many pods that are ready may be deleted."""
    surge: int = 0
    surge_old: int = 0
    update: int = 0
    update_max_unavailable: int = 0


def diffs(limits: Limits, new: Tally, old: Tally) -> Diffs:
    """`new` are the pods of the update revision. No pod is updated to the current one."""
    pods = new + old
    unavailable = pods.preparing_delete + pods.unavailable
    outdated = max(old.active - limits.partition, 0)
    lacking = max(limits.replicas - limits.partition - new.active, 0)
    surge, surge_old = _surge_counts(limits, new, pods, unavailable, min(outdated, lacking))
    update = min(outdated, lacking)
    total, total_old = pods.total, old.total
    if limits.excludes_preparing_delete:
        total, total_old = pods.active, old.active
    expected, expected_old = limits.replicas + surge, limits.partition + surge_old
    scale_up = max(expected - total, 0)
    scale_down = max(total - pods.to_delete - expected, 0)
    may_delete = max(limits.max_unavailable + pods.total - limits.replicas - unavailable, 0)
    return Diffs(
        scale_up=scale_up,
        scale_up_old=max(expected_old - total_old, 0) if scale_up else 0,
        scale_up_limit=_scale_up_limit(limits, scale_up, unavailable),
        scale_down=scale_down,
        scale_down_old=max(total_old - old.to_delete - expected_old, 0) if scale_down else 0,
        delete_ready_limit=may_delete if pods.to_delete or scale_down else 0,
        surge=surge,
        surge_old=surge_old,
        update=update,
        update_max_unavailable=limits.max_unavailable + pods.total - limits.replicas if update else 0,
    )


def _surge_counts(
    limits: Limits, new: Tally, pods: Tally, unavailable: int, updating: int
) -> tuple[int, int]:
    """Surge pods replace those to delete or those to update, whichever are more."""
    replacing = min(max(unavailable + pods.to_delete - limits.max_unavailable, 0), pods.to_delete)
    if replacing < updating:
        return min(limits.max_surge, updating), 0
    surge = min(limits.max_surge, replacing)
    return surge, min(surge, max(replacing - new.to_delete, 0))


def _scale_up_limit(limits: Limits, scale_up: int, unavailable: int) -> int:
    if limits.scale_max_unavailable is None:
        return scale_up
    return min(scale_up, max(limits.scale_max_unavailable - unavailable, 0))

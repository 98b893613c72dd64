"""The next step of a pod that its controller changes without replacing it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from mockube.controller_manager.control.actions import Patch


class PodStep(Struct, frozen=True, kw_only=True):
    """The patches of one pod, and the time after which to check it again."""

    patches: tuple[Patch, ...] = ()
    requeue_after: timedelta | None = None


NO_STEP: Final = PodStep()


def patches_besides_updates(
    step_patches: Iterable[Patch], update_patches: Iterable[Patch]
) -> tuple[Patch, ...]:
    """Return the patches of pods' steps without the status patches of pods whose update starts now.

    A readiness gate that was closed for a failed change stays closed: else it would open and close again and again.
    """
    starting = {patch.key for patch in update_patches}
    return tuple(patch for patch in step_patches if not (patch.subresource and patch.key in starting))

"""What scaling or updating wants done in one round."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Final

from controller_manager.runtime.actions import Action, Patch, SlowStart


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    actions: tuple[Action, ...] = ()
    changes_pods: bool = False
    """Something is written: whatever comes next is decided on what it brings."""
    again_after: timedelta | None = None
    problem: str = ""
    """Why not all could be done that was wanted, where no answer of a server says so."""


NOTHING_TO_DO: Final = Decision()


def earliest(*delays: timedelta | None) -> timedelta | None:
    return min((delay for delay in delays if delay is not None), default=None)


def side_by_side(patches: Iterable[Patch]) -> tuple[SlowStart, ...]:
    """Of many pods: no pod waits for another, but what is told of their gates is told before they themselves change."""
    ordered = sorted(patches, key=lambda patch: patch.subresource != "status")
    return tuple(
        SlowStart(effects=tuple(group)) for _, group in groupby(ordered, key=lambda patch: patch.subresource)
    )

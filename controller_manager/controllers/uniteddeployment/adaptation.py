"""How each subset stands with the scheduler, by the strategy that the UnitedDeployment asks for."""

from collections.abc import Mapping
from datetime import datetime

from controller_manager.controllers.uniteddeployment import conditions as conditions_of
from controller_manager.controllers.uniteddeployment import reservation, schedulable
from controller_manager.controllers.uniteddeployment.conditions import FALSE, Conditions
from controller_manager.controllers.uniteddeployment.names import CONDITION_UPDATED
from controller_manager.controllers.uniteddeployment.reservation import Rollout
from controller_manager.controllers.uniteddeployment.standing import Standing
from controller_manager.controllers.uniteddeployment.subset import Subset
from controller_manager.controllers.uniteddeployment.views import UnitedView


def standings(
    view: UnitedView, subsets: Mapping[str, Subset], told: Conditions, expected: str, now: datetime
) -> Mapping[str, Standing]:
    """Of all subsets that have a place in the status, and of those that get one."""
    known = _known(view, now)
    updated = conditions_of.find(told, CONDITION_UPDATED)
    assert updated is not None  # it is told before this is asked
    rollout = Rollout(expected=expected, since=conditions_of.transition(updated))
    return {
        name: _look(view, subsets.get(name), rollout, conditions, now) for name, conditions in known.items()
    }


def _known(view: UnitedView, now: datetime) -> Mapping[str, Conditions]:
    """The conditions of each, in the order of the status. Subsets that were taken out keep their places there."""
    known = {one["name"]: one.get("conditions") or () for one in view.status.get("subsetStatuses") or ()}
    begin = _of_newcomer(now) if known and view.schedule.reserves else ()
    return known | {subset.name: begin for subset in view.subsets if subset.name not in known}


def _of_newcomer(now: datetime) -> Conditions:
    message = "newly-created subsets in reservation strategy"
    return conditions_of.schedulable((), FALSE, "created", message, now)


def _look(
    view: UnitedView, subset: Subset | None, rollout: Rollout, conditions: Conditions, now: datetime
) -> Standing:
    schedule = view.schedule
    if subset is None or not schedule.is_adaptive:
        return Standing(conditions=conditions)
    if schedule.reserves:
        return reservation.look(subset, schedule, rollout, conditions, now)
    return schedulable.look(subset, schedule, conditions, now)

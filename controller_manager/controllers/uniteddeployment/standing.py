"""How a subset stands with the scheduler: what is known of it after a look at its pods."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from apimachinery import conditions as of_object
from apimachinery import meta
from apimachinery.wellknown import CONDITION_POD_SCHEDULED
from controller_manager.controllers.uniteddeployment.conditions import Conditions
from controller_manager.workloads.podview import PENDING, PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    conditions: Conditions = ()
    """The subset's, with what is now said of it."""
    unschedulable: bool = False
    marked: bool = False
    """It was said to be unschedulable before."""
    pending: int = 0
    """Pods that have found no node for too long."""
    reserved: int = 0
    overdue: int = 0
    """Reserved pods whose update takes too long."""
    marks: tuple[tuple[PodView, bool], ...] = ()
    """Pods that are to be told whether they are reserved."""
    check_after: timedelta | None = None


FREE = Standing()


def time_to_find_node(pod: PodView, critical: timedelta, now: datetime) -> timedelta | None:
    """Until it has found none for too long, which it has if nothing remains; None if it is not looking for one."""
    scheduled = of_object.get(pod.object, CONDITION_POD_SCHEDULED)
    is_refused = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    created = meta.creation_timestamp(pod.object)
    if not is_refused or pod.deleting or pod.phase != PENDING or pod.node or created is None:
        return None
    return created + critical - now

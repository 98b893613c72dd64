"""The controller of StatefulSets: what it watches, and in what its sets differ from others."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mockube.controller_manager.client.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.controllers.statefulset.rolling import roll
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of, owner_of_pod
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.customs import NoCustoms
from mockube.controller_manager.workloads.stateful.reconciliation import Account, Kind, reconcile
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import Slot, StatefulSetState


def _no_customs(*_: object) -> NoCustoms:
    return NoCustoms()


def _current_ordinals(owner: SetView, _: Sequence[Slot], __: str) -> range:
    if owner.partition is not None:
        count = owner.partition
    else:
        count = 0 if owner.on_delete else owner.status.get("currentReplicas") or 0
    return range(owner.start, owner.start + count)


def _status(state: StatefulSetState, account: Account) -> dict[str, Any]:
    counted = status.count_pods(state, account.collision_count, account.replaced)
    return counted if state.owner.on_delete else status.complete_update(counted, state.owner.replicas)


_KIND: Final = Kind(
    resource=STATEFUL_SETS,
    view=partial(SetView.of, STATEFUL_SETS),
    customs=_no_customs,
    current_ordinals=_current_ordinals,
    roll=roll,
    status=_status,
)

STATEFUL_SET: Final = Controller(
    name="statefulset-controller",
    queue="statefulset",
    service_account="statefulset-controller",
    watches=identity.watches_of(STATEFUL_SETS),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    reconcile=partial(reconcile, _KIND),
    workers=5,
)

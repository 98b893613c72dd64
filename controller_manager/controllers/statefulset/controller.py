"""The controller of StatefulSets: what it watches, and in what its sets differ from others."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from controller_manager.controllers.statefulset.rolling import roll
from controller_manager.indexes import BY_OWNER, owner_of, owner_of_pod
from controller_manager.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from controller_manager.runtime.controller import Controller
from controller_manager.workloads.stateful import keys, status
from controller_manager.workloads.stateful.customs import NoCustoms
from controller_manager.workloads.stateful.reconciliation import Account, Kind, reconcile
from controller_manager.workloads.stateful.scene import Scene, Slot
from controller_manager.workloads.stateful.setview import SetView


def _customs(*_: object) -> NoCustoms:
    return NoCustoms()


def _kept(owner: SetView, _: Sequence[Slot], __: str) -> range:
    if owner.partition is not None:
        kept = owner.partition
    else:
        kept = 0 if owner.on_delete else owner.status.get("currentReplicas") or 0
    return range(owner.start, owner.start + kept)


def _status(scene: Scene, account: Account) -> dict[str, Any]:
    counted = status.counted(scene, account.collision_count, account.replaced)
    return counted if scene.owner.on_delete else status.completed(counted, scene.owner.replicas)


_KIND: Final = Kind(
    resource=STATEFUL_SETS,
    view=partial(SetView.of, STATEFUL_SETS),
    customs=_customs,
    kept=_kept,
    roll=roll,
    status=_status,
)

STATEFUL_SET: Final = Controller(
    name="statefulset-controller",
    queue="statefulset",
    service_account="statefulset-controller",
    watches=keys.watches_of(STATEFUL_SETS),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    reconcile=partial(reconcile, _KIND),
    workers=5,
)

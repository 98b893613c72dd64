"""The Advanced StatefulSet controller: its watches, and its differences from the StatefulSet controller."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of, owner_of_pod
from mockube.controller_manager.workloads.stateful import identity
from mockube.controller_manager.workloads.stateful.reconciliation import StatefulSetKind, reconcile
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import Slot
from mockube.packs.kruise.inplace import lifecycle
from mockube.packs.kruise.inplace.lifecycle import Lifecycle, LifecycleState
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS

from . import status
from .hooks import LifecycleHooks
from .rolling import rolling_update
from .strategy import UpdateStrategy, max_unavailable_pods, ordinals


def advanced_set_view(tree: ReadOnlyTree) -> SetView:
    spec = tree["spec"]
    common = SetView.of(ADVANCED_STATEFUL_SETS, tree)
    strategy = UpdateStrategy.of(spec)
    limit = (spec.get("scaleStrategy") or {}).get("maxUnavailable")
    return replace(
        common,
        ordinals=ordinals(common.start, common.replicas, spec.get("reserveOrdinals") or ()),
        min_ready_seconds=strategy.min_ready_seconds,
        controls_claims=False,
        scale_limit=None if limit is None else max_unavailable_pods(limit, common.replicas),
        capitalizes_events=False,
        blocks_on_terminal_pods=True,
    )


def _pod_handling(owner: SetView, newest: str, now: datetime) -> LifecycleHooks:
    return LifecycleHooks(lifecycle=Lifecycle.of(owner.object["spec"]), newest=newest, now=now)


def _current_ordinals(
    owner: SetView, slots: Sequence[Slot], newest: str, *, counts_prepared: bool = False
) -> Collection[int]:
    """Return the ordinals whose new pods get the current revision.

    An ordered update keeps it for the first pods, up to the partition. An unordered update keeps it for missing pods,
    until as many pods are outdated as the partition demands.
    """
    strategy = UpdateStrategy.of(owner.object["spec"])
    if owner.on_delete:
        return ()
    if not strategy.is_specified:
        return range(owner.start, owner.start + (owner.status.get("currentReplicas") or 0))
    if not strategy.unordered:
        return {slot.ordinal for slot in slots[: strategy.partition]}
    missing = [slot.ordinal for slot in slots if slot.pod is None]
    outdated = sum(
        slot.pod is not None
        and identity.revision_of(slot.pod) != newest
        and not (counts_prepared and lifecycle.state_of(slot.pod) == LifecycleState.PREPARING_UPDATE)
        for slot in slots
    )
    return {*missing[: max(strategy.partition - outdated, 0)]}


_ADVANCED_STATEFUL_SET_KIND: Final = StatefulSetKind(
    resource=ADVANCED_STATEFUL_SETS,
    view=advanced_set_view,
    pod_handling=_pod_handling,
    current_ordinals=_current_ordinals,
    roll=rolling_update,
    status=status.of,
)

ADVANCED_STATEFUL_SET: Final = Controller(
    name="advancedstatefulset-controller",
    queue="advancedstatefulset",
    service_account="",
    event_component="statefulset-controller",
    metrics_name="statefulset-controller",
    watches=identity.watches_of(ADVANCED_STATEFUL_SETS),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    needs=(ADVANCED_STATEFUL_SETS,),
    reconcile=partial(reconcile, _ADVANCED_STATEFUL_SET_KIND),
    workers=3,
)

ADVANCED_STATEFUL_SET_COUNTING_PREPARED: Final = replace(
    ADVANCED_STATEFUL_SET,
    reconcile=partial(
        reconcile,
        replace(
            _ADVANCED_STATEFUL_SET_KIND,
            current_ordinals=partial(_current_ordinals, counts_prepared=True),
            roll=partial(rolling_update, counts_prepared=True),
        ),
    ),
)
"""The controller with the feature gate PreparingUpdateAsUpdate: pods that are prepared for their update count as updated."""

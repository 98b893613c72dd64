"""The controller of advanced StatefulSets: what it watches, and in what its sets differ from others."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import ADVANCED_STATEFUL_SETS, CONTROLLER_REVISIONS, PODS
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.controllers.kruise.advancedstatefulset import status
from mockube.controller_manager.controllers.kruise.advancedstatefulset.hooks import Hooks
from mockube.controller_manager.controllers.kruise.advancedstatefulset.rolling import roll
from mockube.controller_manager.controllers.kruise.advancedstatefulset.strategy import (
    Strategy,
    max_unavailable_pods,
    ordinals,
)
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of, owner_of_pod
from mockube.controller_manager.workloads.stateful import identity
from mockube.controller_manager.workloads.stateful.reconciliation import Kind, reconcile
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import Slot


def view(tree: ReadOnlyTree) -> SetView:
    spec = tree["spec"]
    common = SetView.of(ADVANCED_STATEFUL_SETS, tree)
    strategy = Strategy.of(spec)
    limit = (spec.get("scaleStrategy") or {}).get("maxUnavailable")
    return replace(
        common,
        ordinals=ordinals(common.start, common.replicas, spec.get("reserveOrdinals") or ()),
        min_ready_seconds=strategy.min_ready_seconds,
        controls_claims=False,
        scale_limit=None if limit is None else max_unavailable_pods(limit, common.replicas),
        titles_events=False,
        waits_for_ended=True,
    )


def _hooks(owner: SetView, newest: str, now: datetime) -> Hooks:
    return Hooks(lifecycle=Lifecycle.of(owner.object["spec"]), newest=newest, now=now)


def _current_ordinals(owner: SetView, slots: Sequence[Slot], newest: str) -> Collection[int]:
    """In order the first pods; else those recreated first, until enough pods are not updated."""
    strategy = Strategy.of(owner.object["spec"])
    if owner.on_delete:
        return ()
    if not strategy.is_specified:
        return range(owner.start, owner.start + (owner.status.get("currentReplicas") or 0))
    if not strategy.unordered:
        return {slot.ordinal for slot in slots[: strategy.partition]}
    missing = [slot.ordinal for slot in slots if slot.pod is None]
    outdated = sum(slot.pod is not None and identity.revision_of(slot.pod) != newest for slot in slots)
    return {*missing[: max(strategy.partition - outdated, 0)]}


_KIND: Final = Kind(
    resource=ADVANCED_STATEFUL_SETS,
    view=view,
    pod_handling=_hooks,
    current_ordinals=_current_ordinals,
    roll=roll,
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
    reconcile=partial(reconcile, _KIND),
    workers=3,
)

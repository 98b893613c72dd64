"""The Deployment controller: its watches, and its reconcile function."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan, RecordEvent
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object
from mockube.controller_manager.workloads import ownership

from . import status
from .state import DeploymentView, state_of
from .sync import plan


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    deployment = caches.of(DEPLOYMENTS).get(*key)
    if deployment is None:
        return EMPTY_PLAN
    try:
        selector = ownership.selector_of(deployment)
    except SelectorError:
        selector = labels.NOTHING
    if selector.matches_nothing:
        return EMPTY_PLAN  # no server accepts it, and sets created for it would not be selected
    if selector.empty:
        return _selecting_all_plan(deployment)
    claims = ownership.owned_objects(caches, REPLICA_SETS, deployment, selector)
    # Adoption and release are a reconciliation of their own: sets are counted after the caches show them.
    if first := ownership.adoption_and_release_actions(claims, REPLICA_SETS, deployment, DEPLOYMENTS):
        return Plan(actions=first)
    return plan(state_of(caches, deployment, claims.owned), now)


def _selecting_all_plan(deployment: ReadOnlyTree) -> Plan:
    """Return the plan for an empty selector: a warning, and no other action, because the selector matches all pods."""
    view = DeploymentView(deployment)
    text = "This deployment is selecting all pods. A non-empty selector is required."
    warning = RecordEvent(about=deployment, type="Warning", reason="SelectingAll", message=text)
    new_status = {**view.status, "observedGeneration": meta.generation(deployment)}
    return Plan(actions=(warning, *status.write_status(view, new_status)))


# --- the Deployments that a change affects


def _recreate_deployment_of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the key of the Recreate Deployment of a pod that ended or was deleted: a rollout waits for its old pods."""
    pod: PodView = change.last_known
    if change.new is not None and not pod.is_terminal:
        return
    owner = meta.controller_of(pod.object)
    replica_set = caches.of(REPLICA_SETS).get(pod.key.namespace, owner["name"]) if owner else None
    if replica_set is None or meta.uid(replica_set) != pod.owner_uid:
        return
    reference = meta.controller_of(replica_set)
    deployment = caches.of(DEPLOYMENTS).get(pod.key.namespace, reference["name"]) if reference else None
    if deployment is not None and not DeploymentView(deployment).is_rolling_update:
        yield Key.of(deployment)


DEPLOYMENT: Final = Controller(
    name="deployment-controller",
    queue="deployment",
    service_account="deployment-controller",
    watches=(
        Watch(resource=DEPLOYMENTS, keys=key_of_object),
        Watch(
            resource=REPLICA_SETS,
            keys=ownership.keys_of_owners(REPLICA_SETS, DEPLOYMENTS, ownership.selector_of),
        ),
        Watch(resource=PODS, keys=_recreate_deployment_of_pod),
    ),
    reconcile=reconcile,
    workers=5,
    indexes={
        REPLICA_SETS: {ownership.BY_OWNER: ownership.owner_of},
        PODS: {ownership.BY_OWNER: ownership.owner_of_pod},
    },
)

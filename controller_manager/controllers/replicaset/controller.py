"""The controllers of ReplicaSets and ReplicationControllers: what they watch, and how a reconciliation is put together."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import SelectorError
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.controllers.replicaset.plan import (
    REPLICA_SET_FAMILY,
    REPLICATION_CONTROLLER_FAMILY,
    Family,
    kin_of,
    plan,
    pods_of,
    state_of,
)
from mockube.controller_manager.controllers.replicaset.status import next_check, status_update
from mockube.controller_manager.workloads import indexes as primary
from mockube.controller_manager.workloads.ownership import (
    BY_OWNER,
    adoption_and_release_actions,
    keys_of_owners,
    owner_of,
    owner_of_pod,
)


def reconcile(family: Family, caches: Caches, key: Key, now: datetime) -> Plan:
    owner = caches.of(family.resource).get(*key)
    if owner is None:
        return EMPTY_PLAN
    try:
        selector = family.selector(owner)
    except SelectorError:
        selector = labels.NOTHING
    if selector.matches_nothing:
        return EMPTY_PLAN  # no server accepts it; pods that are made for it would never be found again
    claims = pods_of(caches, owner, selector)
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    if first := adoption_and_release_actions(claims, PODS, owner, family.resource):
        return Plan(actions=first)
    state = state_of(owner, claims.owned)
    kin = partial(kin_of, caches, family, owner)
    return Plan(
        actions=() if meta.is_deleting(owner) else plan(state, kin, now),
        last=lambda error: status_update(state, family, error, now),
        again_after=next_check(state, now),
    )


_PATIENCE: Final = timedelta(milliseconds=50)
"""Many pods become ready at once, and each reconciliation counts all. A change of the spec is reconciled at once."""


def _controller(family: Family, *, name: str, queue: str, service_account: str) -> Controller:
    resource = family.resource
    return Controller(
        name=name,
        queue=queue,
        service_account=service_account,
        watches=(
            *primary.watches_of(resource, patience=_PATIENCE),
            Watch(
                resource=PODS,
                keys=keys_of_owners(PODS, resource, family.selector),
                patience=_PATIENCE,
            ),
        ),
        reconcile=partial(reconcile, family),
        events_can_wait=True,
        workers=5,
        indexes={resource: {BY_OWNER: owner_of}, PODS: {BY_OWNER: owner_of_pod}},
    )


REPLICA_SET: Final = _controller(
    REPLICA_SET_FAMILY,
    name="replicaset-controller",
    queue="replicaset",
    service_account="replicaset-controller",
)
REPLICATION_CONTROLLER: Final = _controller(
    REPLICATION_CONTROLLER_FAMILY,
    name="replicationcontroller-controller",
    queue="replicationmanager",
    service_account="replication-controller",
)

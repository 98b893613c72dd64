"""The Endpoints controller: its watches, and its reconcile function."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_ENDPOINTS_OVER_CAPACITY,
    ANNOTATION_LEADER,
    LABEL_HEADLESS_SERVICE,
)
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import ENDPOINTS, PODS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Plan,
    Remember,
    Update,
)
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.services import TriggerTimes

from .subsets import subsets_of, truncate_subsets

LABEL_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"


def reconcile(caches: Caches, key: Key, now: datetime, memory: TriggerTimes | None) -> Plan:
    service = caches.of(SERVICES).get(*key)
    present = caches.of(ENDPOINTS).get(*key)
    if service is None:
        return _plan_without_service(present, was_known=memory is not None)
    if services.selector_of(service) is None:
        return EMPTY_PLAN
    pods = [
        pod for pod in caches.of(PODS).in_namespace(key.namespace) if services.selects(service, pod.labels)
    ]
    times = TriggerTimes.of(service, pods, now)
    remember = Remember(times)
    subsets = subsets_of(service, pods)
    if present is not None and _is_up_to_date(present, service, subsets):
        return Plan(actions=(remember,), counted=len(pods))
    annotation = times.annotation(memory)
    desired = meta.with_annotations(_desired_endpoints(service, present, subsets), annotation)
    write = _write(service, desired, is_new=present is None)
    return Plan(actions=(remember, write), counted=len(pods))


def _plan_without_service(present: ReadOnlyTree | None, *, was_known: bool) -> Plan:
    """Return the plan that deletes the Endpoints of a deleted service, even if a user created them."""
    forget = Remember(None)
    is_own = was_known or _is_managed(present)
    if present is None or not is_own or ANNOTATION_LEADER in meta.annotations(present):
        return Plan(actions=(forget,))
    return Plan(actions=(Delete(resource=ENDPOINTS, objects=(ObjectRef.of(present),)), forget))


def _is_managed(endpoints: ReadOnlyTree | None) -> bool:
    return endpoints is not None and meta.labels(endpoints).get(LABEL_MANAGED_BY) == MANAGER


def _is_up_to_date(present: ReadOnlyTree, service: ReadOnlyTree, subsets: list[dict[str, Any]]) -> bool:
    """Return whether the Endpoints have the subsets and the service's labels; truncated ones are never up to date."""
    labels = {
        name: value
        for name, value in meta.labels(present).items()
        if name not in (LABEL_MANAGED_BY, LABEL_HEADLESS_SERVICE)
    }
    return (
        (present.get("subsets") or []) == subsets
        and _is_managed(present)
        and labels == meta.labels(service)
        and ANNOTATION_ENDPOINTS_OVER_CAPACITY not in meta.annotations(present)
    )


def _desired_endpoints(
    service: ReadOnlyTree, present: ReadOnlyTree | None, subsets: list[dict[str, Any]]
) -> dict[str, Any]:
    truncated, is_truncated = truncate_subsets(subsets)
    base = present or {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": meta.name(service), "namespace": meta.namespace(service)},
    }
    headless = {} if services.has_cluster_ip(service) else {LABEL_HEADLESS_SERVICE: ""}
    own_labels = {
        name: value for name, value in meta.labels(service).items() if name != LABEL_HEADLESS_SERVICE
    }
    labels = {**own_labels, **headless, LABEL_MANAGED_BY: MANAGER}
    capacity = {ANNOTATION_ENDPOINTS_OVER_CAPACITY: "truncated" if is_truncated else None}
    with_subsets = {**meta.with_metadata(base, labels=labels), "subsets": truncated or None}
    return meta.with_annotations(with_subsets, capacity)


def _write(service: ReadOnlyTree, body: ReadOnlyTree, *, is_new: bool) -> Create | Update:
    name_in_message = meta.namespaced_name(service)
    if is_new:
        failed = (
            "FailedToCreateEndpoint",
            f"Failed to create endpoint for service {name_in_message}: {{error}}",
        )
        return Create(resource=ENDPOINTS, bodies=(body,), event=EventTemplate(about=body, on_failure=failed))
    failed = ("FailedToUpdateEndpoint", f"Failed to update endpoint {name_in_message}: {{error}}")
    return Update(resource=ENDPOINTS, body=body, event=EventTemplate(about=body, on_failure=failed))


def _endpoints_key(_: Caches, change: Change) -> Iterable[Key]:
    """Return the key of Endpoints that were deleted, or may be left over from a deleted service.

    Changes by other writers are not reverted.
    """
    is_new_and_managed = change.old is None and _is_managed(change.new)
    return (Key.of(change.last_known),) if change.new is None or is_new_and_managed else ()


SERVICE_ENDPOINTS: Final = Controller(
    name="endpoints-controller",
    queue="endpoint",
    service_account="endpoint-controller",
    watches=(
        Watch(resource=SERVICES, keys=key_of_object),
        Watch(resource=PODS, keys=partial(services.keys_of_pod, SERVICES), pause=services.PAUSE),
        Watch(resource=ENDPOINTS, keys=_endpoints_key),
    ),
    reconcile=reconcile,
    has_memory=True,
    workers=5,
)

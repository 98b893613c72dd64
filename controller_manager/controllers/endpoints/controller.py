"""Decide what the Endpoints of a service hold."""

from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_ENDPOINTS_OVER_CAPACITY,
    ANNOTATION_LAST_CHANGE_TRIGGER_TIME,
    ANNOTATION_LEADER,
    LABEL_HEADLESS_SERVICE,
)
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import ENDPOINTS, PODS, SERVICES
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import NOTHING, Create, Delete, Plan, Saying, Update, Victim
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.controllers.endpoints.subsets import shortened, subsets_of
from mockube.controller_manager.workloads import services


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    service = caches.of(SERVICES).get(*key)
    present = caches.of(ENDPOINTS).get(*key)
    if service is None:
        return _without_service(present)
    if services.selector_of(service) is None:
        return NOTHING
    pods = [
        pod for pod in caches.of(PODS).in_namespace(key.namespace) if services.selects(service, pod.labels)
    ]
    wanted = _wanted(service, present, subsets_of(service, pods))
    if wanted is None:
        return NOTHING
    told = meta.annotations(present or {}).get(ANNOTATION_LAST_CHANGE_TRIGGER_TIME, "")
    changed = services.last_change(service, pods, told)
    annotations = {ANNOTATION_LAST_CHANGE_TRIGGER_TIME: format_time(changed) if changed else None}
    return _write(service, meta.with_annotations(wanted, annotations), is_new=present is None)


def _without_service(present: ReadOnlyTree | None) -> Plan:
    if present is None or ANNOTATION_LEADER in meta.annotations(present):
        return NOTHING
    return Plan(actions=(Delete(resource=ENDPOINTS, victims=(Victim.of(present),)),))


def _wanted(
    service: ReadOnlyTree, present: ReadOnlyTree | None, subsets: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """None where it is there already."""
    kept, is_over = shortened(subsets)
    base = present or {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": meta.name(service), "namespace": meta.namespace(service)},
    }
    headless = {} if services.has_cluster_ip(service) else {LABEL_HEADLESS_SERVICE: ""}
    labels = {**meta.labels(service), **headless}
    capacity = {ANNOTATION_ENDPOINTS_OVER_CAPACITY: "truncated" if is_over else None}
    filled = {**meta.with_metadata(base, labels=labels), "subsets": kept}
    wanted = meta.with_annotations(filled if kept else {**filled, "subsets": None}, capacity)
    return None if present is not None and _same(present, wanted) else wanted


def _same(present: ReadOnlyTree, wanted: ReadOnlyTree) -> bool:
    return (
        present.get("subsets") == wanted["subsets"]
        and meta.labels(present) == meta.labels(wanted)
        and meta.annotations(present) == meta.annotations(wanted)
    )


def _write(service: ReadOnlyTree, body: ReadOnlyTree, *, is_new: bool) -> Plan:
    place = f"{meta.namespace(service)}/{meta.name(service)}"
    if not is_new:
        failed = ("FailedToUpdateEndpoint", f"Failed to update endpoint {place}: {{error}}")
        return Plan(
            actions=(Update(resource=ENDPOINTS, body=body, saying=Saying(about=body, failed=failed)),)
        )
    failed = ("FailedToCreateEndpoint", f"Failed to create endpoint for service {place}: {{error}}")
    return Plan(
        actions=(Create(resource=ENDPOINTS, bodies=(body,), saying=Saying(about=body, failed=failed)),)
    )


SERVICE_ENDPOINTS: Final = Controller(
    name="endpoints-controller",
    queue="endpoint",
    service_account="endpoint-controller",
    watches=(
        Watch(resource=SERVICES, keys=services.of_service),
        Watch(resource=PODS, keys=partial(services.of_pod, SERVICES)),
        Watch(resource=ENDPOINTS, keys=services.of_service),
    ),
    reconcile=reconcile,
    workers=5,
)

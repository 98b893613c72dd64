"""The EndpointSlice controller: its watches, and its reconcile function."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_ZONE
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Plan,
    RecordEvent,
    Remember,
    Update,
)
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object
from mockube.controller_manager.workloads import endpoint_slices, services
from mockube.controller_manager.workloads.endpoint_slices import SliceChanges, SliceOptions
from mockube.controller_manager.workloads.services import TriggerTimes

from . import hints
from .desired_endpoints import address_types, group_by_ports, labels_of

BY_SERVICE: Final = "service"
BY_TOPOLOGY_MODE: Final = "topology-mode"
"""The index of services whose endpoints are allocated to zones."""
_ALLOCATED_TO_ZONES: Final = "by-zone"
MAX_ENDPOINTS: Final = 100
"""The maximum number of endpoints in a slice, as in upstream."""
MANAGER: Final = "endpointslice-controller.k8s.io"


class Memory(Struct, frozen=True):
    """The data about a service that is passed to its next reconciliation."""

    times: TriggerTimes
    is_allocated_to_zones: bool = False
    """Whether its endpoints are allocated to zones."""


def reconcile(
    max_endpoints: int, caches: Caches, key: Key, now: datetime, memory: Memory | None = None
) -> Plan:
    service = caches.of(kinds.SERVICES).get(*key)
    if service is None or services.selector_of(service) is None:
        # The garbage collector deletes the slices of a deleted service.
        return Plan(actions=(Remember(None),)) if memory else EMPTY_PLAN
    slices = caches.of(kinds.ENDPOINT_SLICES).by_index(BY_SERVICE, str(key))
    pods = [
        pod
        for pod in caches.of(kinds.PODS).in_namespace(key.namespace)
        if services.selects(service, pod.labels)
    ]
    was_allocated_to_zones = memory is not None and memory.is_allocated_to_zones
    changes, is_allocated_to_zones, events = _changes(
        caches, service, pods, slices, max_endpoints, was_allocated_to_zones=was_allocated_to_zones
    )
    times = TriggerTimes.of(service, pods, now)
    annotation = times.annotation(memory.times if memory else None)
    remember = Remember(Memory(times, is_allocated_to_zones))
    return Plan(actions=(remember, *_actions(service, changes, annotation), *events), counted=len(pods))


def _changes(
    caches: Caches,
    service: ReadOnlyTree,
    pods: Iterable[PodView],
    slices: Iterable[ReadOnlyTree],
    max_endpoints: int,
    *,
    was_allocated_to_zones: bool,
) -> tuple[SliceChanges, bool, tuple[Action, ...]]:
    """Return the changes, whether endpoints are allocated to zones, and the Events about their hints."""
    nodes = caches.of(kinds.NODES)
    ratios = hints.zone_ratios(nodes) if hints.uses_topology_mode(service) else None
    labels = labels_of(service, MANAGER)
    types = address_types(service)
    changes = SliceChanges(
        delete=[endpoint_slice for endpoint_slice in slices if endpoint_slice["addressType"] not in types]
    )
    events: list[Action] = []
    is_allocated_to_zones = was_allocated_to_zones
    for address_type in types:
        present = [
            endpoint_slice for endpoint_slice in slices if endpoint_slice["addressType"] == address_type
        ]
        desired = group_by_ports(service, pods, address_type, lambda name: nodes.get("", name))
        new_slice = partial(endpoint_slices.slice_of, service, labels, address_type)
        options = SliceOptions(labels=labels, new_slice=new_slice, max_endpoints=max_endpoints)
        changes_without_hints = endpoint_slices.reconcile_slices(service, present, desired, options)
        result = hints.with_hints(
            service,
            address_type,
            changes_without_hints,
            present,
            ratios,
            was_allocated_to_zones=is_allocated_to_zones,
        )
        is_allocated_to_zones = result.is_allocated_to_zones
        events += [_hints_event(service, message) for message in result.messages]
        changes = changes + result.changes
    return changes, is_allocated_to_zones, tuple(events)


def _hints_event(service: ReadOnlyTree, message: str) -> RecordEvent:
    is_enabled = message.startswith(hints.HINTS_ENABLED)
    reason = "TopologyAwareHintsEnabled" if is_enabled else "TopologyAwareHintsDisabled"
    return RecordEvent(
        about=service, type="Normal" if is_enabled else "Warning", reason=reason, message=message
    )


def _actions(
    service: ReadOnlyTree, changes: SliceChanges, annotations: Mapping[str, str | None]
) -> Iterator[Action]:
    creations = () if meta.is_deleting(service) else changes.create
    for body in creations:
        yield Create(
            resource=kinds.ENDPOINT_SLICES,
            bodies=(meta.with_annotations(body, annotations),),
            event=_failure_event(service, "Create", "create"),
        )
    for body in changes.update:
        yield Update(
            resource=kinds.ENDPOINT_SLICES,
            body=meta.with_annotations(body, annotations),
            event=_failure_event(service, "Update", "update"),
        )
    if changes.delete:
        refs = tuple(ObjectRef.of(endpoint_slice) for endpoint_slice in changes.delete)
        yield Delete(
            resource=kinds.ENDPOINT_SLICES, objects=refs, event=_failure_event(service, "Delete", "delete")
        )


def _failure_event(service: ReadOnlyTree, name: str, verb: str) -> EventTemplate:
    name_in_message = meta.namespaced_name(service)
    message = f"Error {verb.removesuffix('e')}ing EndpointSlice for Service {name_in_message}: {{error}}"
    return EventTemplate(about=service, on_failure=(f"FailedTo{name}EndpointSlices", message))


def _services_of_node(caches: Caches, change: Change) -> Iterator[Key]:
    """Yield the keys of services with endpoints on the node, and of those whose zones have too few endpoints now.

    Endpoints contain the node's zone, and are created only when the pod's node exists.
    """
    old, new = (None if node is None else _topology(node) for node in change)
    if old != new:
        yield from _overloaded_keys(caches)
    if old is not None and new is not None and old[0] == new[0]:
        return
    for pod in caches.of(kinds.PODS).by_index(BY_NODE, meta.name(change.last_known)):
        yield from services.keys_of_pod(kinds.SERVICES, caches, Change(None, pod))


def _overloaded_keys(caches: Caches) -> Iterator[Key]:
    """Yield the keys of the services that have too few endpoints in a zone now."""
    shared = caches.of(kinds.SERVICES).by_index(BY_TOPOLOGY_MODE, _ALLOCATED_TO_ZONES)
    ratios = hints.zone_ratios(caches.of(kinds.NODES)) if shared else None
    for service in shared:
        key = Key.of(service)
        slices = caches.of(kinds.ENDPOINT_SLICES).by_index(BY_SERVICE, str(key))
        types = {endpoint_slice["addressType"] for endpoint_slice in slices}
        if any(
            hints.is_overloaded(
                [
                    endpoint_slice
                    for endpoint_slice in slices
                    if endpoint_slice["addressType"] == address_type
                ],
                ratios,
            )
            for address_type in types
        ):
            yield key


def topology_mode(service: ReadOnlyTree) -> tuple[str, ...]:
    return (_ALLOCATED_TO_ZONES,) if hints.uses_topology_mode(service) else ()


def _topology(node: ReadOnlyTree) -> tuple[Any, bool]:
    """Return the node's zone, and whether it is ready."""
    return meta.labels(node).get(LABEL_ZONE), conditions.is_true(node, CONDITION_READY)


by_own_service: Final = endpoint_slices.by_service(MANAGER)

SERVICE_ENDPOINT_SLICES: Final = Controller(
    name="endpointslice-controller",
    queue="endpoint_slice",
    service_account="endpointslice-controller",
    watches=(
        Watch(resource=kinds.SERVICES, keys=key_of_object),
        Watch(resource=kinds.PODS, keys=partial(services.keys_of_pod, kinds.SERVICES), pause=services.PAUSE),
        Watch(resource=kinds.ENDPOINT_SLICES, keys=endpoint_slices.keys_of_services(by_own_service)),
        Watch(resource=kinds.NODES, keys=_services_of_node),
    ),
    reconcile=partial(reconcile, MAX_ENDPOINTS),
    workers=5,
    event_component="endpoint-slice-controller",
    has_memory=True,
    indexes={
        kinds.ENDPOINT_SLICES: {BY_SERVICE: by_own_service},
        kinds.PODS: {BY_NODE: node_of_pod},
        kinds.SERVICES: {BY_TOPOLOGY_MODE: topology_mode},
    },
    tallies={kinds.NODES: {hints.BY_ZONE_AND_CPU: hints.zone_and_cpu}},
)

"""Compute the changes that bring the existing EndpointSlices to the desired endpoints, with few writes.

Pure. Endpoints stay in their slice; new ones fill slices that change anyway, then the fullest slice that has room for all
that is left, then new slices. As k8s.io/endpointslice's reconciler. Also the labels by which slices belong to a Service.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.names import check_dns1123_subdomain
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_ENDPOINT_SLICE_MANAGED_BY, LABEL_SERVICE_NAME
from mockube.controller_manager.cache.store import Caches, Change, Indexer
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.controller import ToKeys

Ports = tuple[tuple[str, int, str, str], ...]
"""Name, number, protocol and application protocol of each, in the service's order."""
Endpoints = dict[str, dict[str, Any]]
"""By the uid of their pod, or by their address where there is none."""
NewSlice = Callable[[Ports, Iterable[Any]], dict[str, Any]]


class Shape(Struct, frozen=True, kw_only=True):
    """How slices look."""

    labels: Mapping[str, str]
    new_slice: NewSlice
    maximum: int
    """How many endpoints one may have."""
    placeholder: bool = True
    """An owner that has no endpoints has an empty slice."""


class Changes(Struct):
    create: list[dict[str, Any]] = field(default_factory=list)
    update: list[dict[str, Any]] = field(default_factory=list)
    delete: list[ReadOnlyTree] = field(default_factory=list)

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.create + other.create, self.update + other.update, self.delete + other.delete)


def arrange(
    owner: ReadOnlyTree, present: Sequence[ReadOnlyTree], desired: Mapping[Ports, Endpoints], shape: Shape
) -> Changes:
    """Return the changes to the slices of one address type."""
    own = [endpoint_slice for endpoint_slice in present if _is_of(endpoint_slice, owner)]
    changes = Changes(
        delete=[endpoint_slice for endpoint_slice in present if not _is_of(endpoint_slice, owner)]
    )
    by_ports: defaultdict[Ports, list[ReadOnlyTree]] = defaultdict(list)
    for endpoint_slice in own:
        by_ports[ports_of(endpoint_slice)].append(endpoint_slice)
    for ports, endpoints in desired.items():
        changes = changes + _arrange_group(by_ports.pop(ports, []), endpoints, ports, shape)
    unwanted = [endpoint_slice for slices in by_ports.values() for endpoint_slice in slices]
    changes.delete += unwanted
    if shape.placeholder and len(changes.delete) == len(present) and not changes.create:
        _keep_placeholder(changes, unwanted, shape)
    return _reuse_slices(changes, owner)


def _arrange_group(
    present: Sequence[ReadOnlyTree], desired: Endpoints, ports: Ports, shape: Shape
) -> Changes:
    """Return the changes to slices that share their ports."""
    missing = dict(desired)
    changes = Changes()
    same: list[ReadOnlyTree] = []
    for endpoint_slice in present:
        retained = [
            missing.pop(uid) for uid in map(_identity, endpoint_slice["endpoints"] or ()) if uid in missing
        ]
        if (
            retained == [*map(without_hints, endpoint_slice["endpoints"] or ())]
            and meta.labels(endpoint_slice) == shape.labels
        ):
            same.append(endpoint_slice)
        elif retained:
            changes.update.append(_with_endpoints(endpoint_slice, shape.labels, retained))
        else:
            changes.delete.append(endpoint_slice)
    remaining = list(missing.values())
    for endpoint_slice in sorted(changes.update, key=lambda changed: -len(changed["endpoints"])):
        free = shape.maximum - len(endpoint_slice["endpoints"])
        endpoint_slice["endpoints"] += remaining[:free]
        remaining = remaining[free:]
    if remaining and len(remaining) < shape.maximum:
        remaining = _fill_one(same, remaining, shape, changes)
    changes.create += [
        shape.new_slice(ports, remaining[start : start + shape.maximum])
        for start in range(0, len(remaining), shape.maximum)
    ]
    return changes


def _fill_one(
    same: Sequence[ReadOnlyTree], remaining: list[Any], shape: Shape, changes: Changes
) -> list[Any]:
    """Put what is left into the fullest slice that can take all of it; what is left then."""
    candidates = [
        endpoint_slice
        for endpoint_slice in same
        if len(endpoint_slice["endpoints"] or ()) + len(remaining) <= shape.maximum
    ]
    if not candidates:
        return remaining
    fullest = max(candidates, key=lambda endpoint_slice: len(endpoint_slice["endpoints"] or ()))
    changes.update.append(_with_endpoints(fullest, shape.labels, [*(fullest["endpoints"] or ()), *remaining]))
    return []


def _keep_placeholder(changes: Changes, unwanted: Sequence[ReadOnlyTree], shape: Shape) -> None:
    """A service without endpoints has one empty slice."""
    placeholder = next(
        (
            endpoint_slice
            for endpoint_slice in unwanted
            if not ports_of(endpoint_slice)
            and not endpoint_slice["endpoints"]
            and meta.labels(endpoint_slice) == shape.labels
        ),
        None,
    )
    if placeholder is None:
        changes.create.append(shape.new_slice((), ()))
    else:
        changes.delete.remove(placeholder)


def _reuse_slices(changes: Changes, owner: ReadOnlyTree) -> Changes:
    """Rather than delete a slice and create another, change the one into the other."""
    for endpoint_slice in [doomed for doomed in changes.delete if _is_of(doomed, owner)]:
        if not changes.create:
            break
        fresh = changes.create.pop()
        changes.delete.remove(endpoint_slice)
        filled = {**endpoint_slice, "endpoints": fresh["endpoints"], "ports": fresh["ports"]}
        changes.update.append(meta.with_metadata(filled, labels=fresh["metadata"]["labels"]))
    return changes


def _with_endpoints(
    endpoint_slice: ReadOnlyTree, labels: Mapping[str, str], endpoints: list[Any]
) -> dict[str, Any]:
    return {**meta.with_metadata(endpoint_slice, labels=labels), "endpoints": endpoints}


def without_hints(endpoint: ReadOnlyTree) -> ReadOnlyTree:
    """Return the endpoint as it is before its hints are decided, which is after the slices."""
    if "hints" not in endpoint:
        return endpoint
    return {field: value for field, value in endpoint.items() if field != "hints"}


def _identity(endpoint: ReadOnlyTree) -> str:
    """Of the pod behind it; where there is none, its address."""
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"][0])


def _is_of(endpoint_slice: ReadOnlyTree, owner: ReadOnlyTree) -> bool:
    return any(reference.get("uid") == meta.uid(owner) for reference in meta.owner_references(endpoint_slice))


def by_service(manager: str) -> Indexer:
    """The index of a manager's slices by the key of their service; slices of others are not in it."""

    def index(endpoint_slice: ReadOnlyTree) -> Iterable[str]:
        labels = meta.labels(endpoint_slice)
        if labels.get(LABEL_ENDPOINT_SLICE_MANAGED_BY) != manager or not labels.get(LABEL_SERVICE_NAME):
            return ()
        return (str(Key(meta.namespace(endpoint_slice), labels[LABEL_SERVICE_NAME])),)

    return index


def keys_of_services(index: Indexer) -> ToKeys:
    """The services that a slice was of, or is."""

    def keys(_: Caches, change: Change) -> Iterator[Key]:
        for endpoint_slice in change:
            for name in index(endpoint_slice) if endpoint_slice is not None else ():
                yield Key(*name.split("/", 1))

    return keys


def slice_of(
    service: ReadOnlyTree,
    labels: Mapping[str, str],
    address_type: str,
    ports: Ports,
    endpoints: Iterable[Any],
) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": _prefix(meta.name(service)),
            "namespace": meta.namespace(service),
            "labels": dict(labels),
            "ownerReferences": [
                meta.controller_reference({"apiVersion": "v1", "kind": "Service", **service})
            ],
        },
        "addressType": address_type,
        "endpoints": list(endpoints),
        "ports": [_port(*port) for port in ports],
    }


def _prefix(name: str) -> str:
    """With a dash where that makes no name that is too long."""
    return name if check_dns1123_subdomain(f"{name}-x") else f"{name}-"


def _port(name: str, number: int, protocol: str, app_protocol: str) -> dict[str, Any]:
    app = {"appProtocol": app_protocol} if app_protocol else {}
    return {"name": name, "port": number, "protocol": protocol} | app


def ports_of(endpoint_slice: ReadOnlyTree) -> Ports:
    return tuple(
        (port.get("name") or "", port["port"], port.get("protocol", "TCP"), port.get("appProtocol") or "")
        for port in endpoint_slice.get("ports") or ()
    )

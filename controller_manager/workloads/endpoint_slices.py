"""Compute the changes from the existing EndpointSlices to the desired endpoints, as k8s.io/endpointslice's reconciler.

Pure. To need few writes, endpoints stay in their slice; new ones are added to slices that change anyway, then to the
fullest slice with enough space for the rest, then to new slices. Also the index of slices by their Service.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.fnv import fnv1a
from mockube.apimachinery.names import check_dns1123_subdomain
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_ENDPOINT_SLICE_MANAGED_BY, LABEL_SERVICE_NAME
from mockube.client.cache.store import Caches, Change, Indexer
from mockube.client.resources import Key
from mockube.controller_manager.control.controller import ToKeys

Ports = tuple[tuple[str, int, str, str], ...]
"""The name, number, protocol and application protocol of each port, as `sort_ports` sorts them."""
Endpoints = dict[str, dict[str, Any]]
"""Endpoints by the uid of their pod, or by their address if they have no pod."""
NewSlice = Callable[[Ports, Iterable[Any]], dict[str, Any]]


class SliceOptions(Struct, frozen=True, kw_only=True):
    """The options of the slices of one owner and address type."""

    labels: Mapping[str, str]
    new_slice: NewSlice
    max_endpoints: int
    """The maximum number of endpoints in a slice."""


class SliceChanges(Struct):
    """The slices to create, update and delete."""

    create: list[dict[str, Any]] = field(default_factory=list)
    update: list[dict[str, Any]] = field(default_factory=list)
    delete: list[ReadOnlyTree] = field(default_factory=list)

    def __add__(self, other: "SliceChanges") -> "SliceChanges":
        return SliceChanges(
            self.create + other.create, self.update + other.update, self.delete + other.delete
        )


def reconcile_slices(
    owner: ReadOnlyTree,
    present: Sequence[ReadOnlyTree],
    desired: Mapping[Ports, Endpoints],
    options: SliceOptions,
) -> SliceChanges:
    """Return the changes of the slices of one address type."""
    owned = [endpoint_slice for endpoint_slice in present if _is_owned_by(endpoint_slice, owner)]
    changes = SliceChanges(
        delete=[endpoint_slice for endpoint_slice in present if not _is_owned_by(endpoint_slice, owner)]
    )
    by_ports: defaultdict[Ports, list[ReadOnlyTree]] = defaultdict(list)
    for endpoint_slice in owned:
        by_ports[ports_of(endpoint_slice)].append(endpoint_slice)
    for ports, endpoints in desired.items():
        changes = changes + _reconcile_group(by_ports.pop(ports, []), endpoints, ports, options)
    unwanted = [endpoint_slice for slices in by_ports.values() for endpoint_slice in slices]
    changes.delete += unwanted
    if len(changes.delete) == len(present) and not changes.create:
        _keep_placeholder(changes, unwanted, options)
    return _reuse_slices(changes, owner)


def _reconcile_group(
    present: Sequence[ReadOnlyTree], desired: Endpoints, ports: Ports, options: SliceOptions
) -> SliceChanges:
    """Return the changes of slices with the same ports."""
    missing = dict(desired)
    changes = SliceChanges()
    unchanged: list[ReadOnlyTree] = []
    for endpoint_slice in present:
        retained = [
            missing.pop(uid)
            for uid in map(_endpoint_key, endpoint_slice["endpoints"] or ())
            if uid in missing
        ]
        if (
            retained == [*map(without_hints, endpoint_slice["endpoints"] or ())]
            and meta.labels(endpoint_slice) == options.labels
        ):
            unchanged.append(endpoint_slice)
        elif retained:
            changes.update.append(_with_endpoints(endpoint_slice, options.labels, retained))
        else:
            changes.delete.append(endpoint_slice)
    remaining = list(missing.values())
    for endpoint_slice in sorted(changes.update, key=lambda changed: -len(changed["endpoints"])):
        free_count = options.max_endpoints - len(endpoint_slice["endpoints"])
        endpoint_slice["endpoints"] += remaining[:free_count]
        remaining = remaining[free_count:]
    if remaining and len(remaining) < options.max_endpoints:
        remaining = _fill_fullest_slice(unchanged, remaining, options, changes)
    changes.create += [
        options.new_slice(ports, remaining[start : start + options.max_endpoints])
        for start in range(0, len(remaining), options.max_endpoints)
    ]
    return changes


def _fill_fullest_slice(
    unchanged: Sequence[ReadOnlyTree], remaining: list[Any], options: SliceOptions, changes: SliceChanges
) -> list[Any]:
    """Add the remaining endpoints to the fullest slice that has space for all; return those that remain."""
    candidates = [
        endpoint_slice
        for endpoint_slice in unchanged
        if len(endpoint_slice["endpoints"] or ()) + len(remaining) <= options.max_endpoints
    ]
    if not candidates:
        return remaining
    fullest = max(candidates, key=lambda endpoint_slice: len(endpoint_slice["endpoints"] or ()))
    changes.update.append(
        _with_endpoints(fullest, options.labels, [*(fullest["endpoints"] or ()), *remaining])
    )
    return []


def _keep_placeholder(changes: SliceChanges, unwanted: Sequence[ReadOnlyTree], options: SliceOptions) -> None:
    """Keep or create the empty slice of a service without endpoints."""
    placeholder = next(
        (
            endpoint_slice
            for endpoint_slice in unwanted
            if not ports_of(endpoint_slice)
            and not endpoint_slice["endpoints"]
            and meta.labels(endpoint_slice) == options.labels
        ),
        None,
    )
    if placeholder is None:
        changes.create.append(options.new_slice((), ()))
    else:
        changes.delete.remove(placeholder)


def _reuse_slices(changes: SliceChanges, owner: ReadOnlyTree) -> SliceChanges:
    """Replace pairs of a deletion and a creation by an update of the slice to delete."""
    for endpoint_slice in [deleted for deleted in changes.delete if _is_owned_by(deleted, owner)]:
        if not changes.create:
            break
        new_slice = changes.create.pop()
        changes.delete.remove(endpoint_slice)
        filled = {**endpoint_slice, "endpoints": new_slice["endpoints"], "ports": new_slice["ports"]}
        changes.update.append(meta.with_metadata(filled, labels=new_slice["metadata"]["labels"]))
    return changes


def _with_endpoints(
    endpoint_slice: ReadOnlyTree, labels: Mapping[str, str], endpoints: list[Any]
) -> dict[str, Any]:
    return {**meta.with_metadata(endpoint_slice, labels=labels), "endpoints": endpoints}


def without_hints(endpoint: ReadOnlyTree) -> ReadOnlyTree:
    """Return the endpoint without hints, which are computed after the slices."""
    if "hints" not in endpoint:
        return endpoint
    return {field: value for field, value in endpoint.items() if field != "hints"}


def _endpoint_key(endpoint: ReadOnlyTree) -> str:
    """Return the uid of an endpoint's pod; without a pod, its address."""
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"][0])


def _is_owned_by(endpoint_slice: ReadOnlyTree, owner: ReadOnlyTree) -> bool:
    return any(reference.get("uid") == meta.uid(owner) for reference in meta.owner_references(endpoint_slice))


def by_service(manager: str) -> Indexer:
    """Return the index function of a manager's slices, by the key of their service; it omits other managers' slices."""

    def index(endpoint_slice: ReadOnlyTree) -> Iterable[str]:
        labels = meta.labels(endpoint_slice)
        if labels.get(LABEL_ENDPOINT_SLICE_MANAGED_BY) != manager or not labels.get(LABEL_SERVICE_NAME):
            return ()
        return (str(Key(meta.namespace(endpoint_slice), labels[LABEL_SERVICE_NAME])),)

    return index


def keys_of_services(index: Indexer) -> ToKeys:
    """Return the mapping of a change of a slice to the keys of its current and previous services."""

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
    """Return the prefix of generated names: the service's name, with a dash unless that makes names too long."""
    return name if check_dns1123_subdomain(f"{name}-x") else f"{name}-"


def _port(name: str, number: int, protocol: str, app_protocol: str) -> dict[str, Any]:
    app = {"appProtocol": app_protocol} if app_protocol else {}
    return {"name": name, "port": number, "protocol": protocol} | app


def ports_of(endpoint_slice: ReadOnlyTree) -> Ports:
    """Return the ports of a slice, or of a subset of Endpoints, sorted."""
    return sort_ports(
        tuple(
            (
                port.get("name") or "",
                port.get("port", 0),
                port.get("protocol", "TCP"),
                port.get("appProtocol") or "",
            )
            for port in endpoint_slice.get("ports") or ()
        )
    )


@lru_cache(1024)
def sort_ports(ports: Ports) -> Ports:
    """Sort as upstream's NewPortMapKey does: by the 128-bit FNV-1a hash of go-spew's text of each port."""
    return tuple(sorted(ports, key=_port_hash)) if len(ports) > 1 else ports


def _port_hash(port: tuple[str, int, str, str]) -> int:
    name, number, protocol, app_protocol = port
    text = (
        f"(v1.EndpointPort){{Name:(*string){name} Protocol:(*v1.Protocol){protocol} "
        f"Port:(*int32){number} AppProtocol:(*string){app_protocol or '<nil>'}}}"
    )
    return fnv1a(text.encode(), 128)

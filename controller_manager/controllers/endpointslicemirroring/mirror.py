"""The slices that mirror an Endpoints object, as upstream's reconciler. Pure.

Subsets are merged first, as upstream's RepackSubsets does. There is one slice for each address type and set of ports.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.endpoint_slices import (
    Ports,
    SliceChanges,
    ports_of,
    slice_of,
    sort_ports,
)

MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
MAX_ENDPOINTS: Final = 1000
"""The maximum number of endpoints in a slice, and of the addresses of a subset that are mirrored."""
_NOT_MIRRORED_ANNOTATIONS: Final = (
    wellknown.ANNOTATION_LAST_CHANGE_TRIGGER_TIME,
    wellknown.ANNOTATION_LAST_APPLIED,
)
_OWN_LABELS: Final = (wellknown.LABEL_ENDPOINT_SLICE_MANAGED_BY, wellknown.LABEL_SERVICE_NAME)
_TARGET: Final = "targetRef"

GroupKey = tuple[str, Ports]
"""The address type and the ports of a slice."""
EndpointKey = tuple[str, str, str, str]
"""The address, the hostname, and the namespace and name of the target."""
Groups = dict[GroupKey, dict[EndpointKey, dict[str, Any]]]


def mirror_changes(endpoints: ReadOnlyTree, present: Iterable[ReadOnlyTree], groups: Groups) -> SliceChanges:
    """Return the changes from the present slices to the desired ones."""
    slices: defaultdict[GroupKey, list[ReadOnlyTree]] = defaultdict(list)
    for endpoint_slice in present:
        slices[endpoint_slice["addressType"], ports_of(endpoint_slice)].append(endpoint_slice)
    changes = SliceChanges()
    for key, desired in groups.items():
        same = slices.pop(key, [])
        changes.delete += same[1:]
        if not same:
            changes.create.append(_new_slice(endpoints, key, desired.values()))
        elif not _is_up_to_date(same[0], endpoints, desired):
            body = meta.with_metadata(_new_slice(endpoints, key, desired.values()), generateName=None)
            changes.update.append(_in_place_of(same[0], body))
    changes.delete += [endpoint_slice for unwanted in slices.values() for endpoint_slice in unwanted]
    return _reuse_slices(changes)


def _is_up_to_date(
    endpoint_slice: ReadOnlyTree,
    endpoints: ReadOnlyTree,
    desired: Mapping[EndpointKey, ReadOnlyTree],
) -> bool:
    present = {endpoint_key(endpoint): endpoint for endpoint in endpoint_slice["endpoints"] or ()}
    labels = _without(meta.labels(endpoint_slice), _OWN_LABELS)
    return (
        present.keys() == desired.keys()
        and all(
            _compared_fields(present[key]) == _compared_fields(endpoint) for key, endpoint in desired.items()
        )
        and labels == meta.labels(endpoints)
        and meta.annotations(endpoint_slice) == _mirrored_annotations(endpoints)
        and not _belongs_to_predecessor(endpoint_slice, endpoints)
    )


def _compared_fields(endpoint: ReadOnlyTree) -> dict[str, Any]:
    """Return the fields that upstream compares: not those of the key, hints, or the target's resourceVersion."""
    conditions = endpoint.get("conditions") or {}
    return {
        "nodeName": endpoint.get("nodeName"),
        "zone": endpoint.get("zone"),
        "conditions": [conditions.get(name) for name in ("ready", "serving", "terminating")],
        _TARGET: _without(endpoint.get(_TARGET) or {}, ("resourceVersion",)),
    }


def _belongs_to_predecessor(endpoint_slice: ReadOnlyTree, endpoints: ReadOnlyTree) -> bool:
    """Return whether the slice's owner is a deleted Endpoints object of the same name."""
    own = meta.controller_reference(_with_type(endpoints))
    return any(
        owner.get("kind") == own["kind"]
        and owner.get("name") == own["name"]
        and owner.get("uid") != own["uid"]
        for owner in meta.owner_references(endpoint_slice)
    )


def _with_type(endpoints: ReadOnlyTree) -> dict[str, Any]:
    return {**endpoints, "apiVersion": "v1", "kind": "Endpoints"}


def _reuse_slices(changes: SliceChanges) -> SliceChanges:
    """Replace pairs of a deletion and a creation by an update of the slice to delete."""
    for new_slice in [*changes.create]:
        reusable = next(
            (each for each in changes.delete if each["addressType"] == new_slice["addressType"]), None
        )
        if reusable is not None:
            changes.create.remove(new_slice)
            changes.delete.remove(reusable)
            changes.update.append(_in_place_of(reusable, new_slice))
    return changes


def _in_place_of(endpoint_slice: ReadOnlyTree, body: ReadOnlyTree) -> dict[str, Any]:
    return meta.with_metadata(
        body,
        name=meta.name(endpoint_slice),
        uid=meta.uid(endpoint_slice),
        resourceVersion=meta.resource_version(endpoint_slice),
    )


def _new_slice(endpoints: ReadOnlyTree, key: GroupKey, mirrored: Iterable[Any]) -> dict[str, Any]:
    labels = {
        **meta.labels(endpoints),
        wellknown.LABEL_SERVICE_NAME: meta.name(endpoints),
        wellknown.LABEL_ENDPOINT_SLICE_MANAGED_BY: MANAGER,
    }
    endpoint_slice = slice_of(_with_type(endpoints), labels, *key, [*mirrored][:MAX_ENDPOINTS])
    return meta.with_metadata(endpoint_slice, annotations=_mirrored_annotations(endpoints))


def _mirrored_annotations(endpoints: ReadOnlyTree) -> dict[str, str]:
    return _without(meta.annotations(endpoints), _NOT_MIRRORED_ANNOTATIONS)


def _without(tree: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in names}


# --- the desired endpoints


def desired_groups(endpoints: ReadOnlyTree) -> tuple[Groups, int]:
    """Return the endpoints of each slice, and the number of addresses that exceed the maximum of their subset."""
    groups: Groups = {}
    skipped = 0
    for ports, addresses in _repack_subsets(endpoints.get("subsets") or ()):
        skipped += max(0, len(addresses) - MAX_ENDPOINTS)
        for endpoint in addresses[:MAX_ENDPOINTS]:
            family = "IPv6" if services.is_ipv6(endpoint["addresses"][0]) else "IPv4"
            groups.setdefault((family, ports), {})[endpoint_key(endpoint)] = endpoint
    return groups, skipped


def _repack_subsets(subsets: Iterable[ReadOnlyTree]) -> Iterator[tuple[Ports, list[dict[str, Any]]]]:
    """Yield the ports with the same addresses, with these addresses: ready ones first, each sorted by address."""
    addresses: dict[tuple[str, str], ReadOnlyTree] = {}
    readiness: defaultdict[Ports, dict[tuple[str, str], bool]] = defaultdict(dict)
    for subset in subsets:
        for port in ports_of(subset) or ((),):
            of_port = readiness[(port,) if port else ()]
            for identity, address, is_ready in _addresses(subset):
                addresses.setdefault(identity, address)
                of_port[identity] = of_port.get(identity, True) and is_ready
    shared: defaultdict[tuple[tuple[tuple[str, str], bool], ...], list[Ports]] = defaultdict(list)
    for ports, of_port in readiness.items():
        shared[tuple(sorted(of_port.items()))].append(ports)
    for group, equal_ports in shared.items():
        in_order = sorted(group, key=lambda each: not each[1])
        yield (
            sort_ports(tuple(port for ports in equal_ports for port in ports)),
            [_endpoint(addresses[identity], ready=is_ready) for identity, is_ready in in_order],
        )


def _addresses(subset: ReadOnlyTree) -> Iterator[tuple[tuple[str, str], ReadOnlyTree, bool]]:
    """Yield each address with its identity, which is the address and the target's uid, and whether it is ready."""
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or ():
            yield (address["ip"], (address.get(_TARGET) or {}).get("uid") or ""), address, is_ready


def _endpoint(address: ReadOnlyTree, *, ready: bool) -> dict[str, Any]:
    optional = {name: address[name] for name in ("hostname", _TARGET, "nodeName") if address.get(name)}
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}, **optional}


def endpoint_key(endpoint: ReadOnlyTree) -> EndpointKey:
    target = endpoint.get(_TARGET) or {}
    return (
        ",".join(sorted(endpoint["addresses"])),
        endpoint.get("hostname") or "",
        target.get("namespace") or "",
        target.get("name") or "",
    )

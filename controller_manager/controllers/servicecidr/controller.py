"""The ServiceCIDR controller: a finalizer protects each ServiceCIDR until no address needs it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change, Lister
from mockube.client.kinds import IP_ADDRESSES, SERVICE_CIDRS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    ObjectRef,
    Patch,
    Plan,
    RecordEvent,
    RemoveFinalizer,
)
from mockube.controller_manager.control.controller import Controller, Watch

NAME: Final = "service-cidr-controller"
FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_DELETION_GRACE_PERIOD: Final = timedelta(seconds=10)
"""The time after which no API server allocates addresses from a range that is being deleted."""
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
_READY: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "",
    "message": "Kubernetes Service CIDR is ready",
}
_TERMINATING: Final = {
    "type": "Ready",
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
}

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    cidr = caches.of(SERVICE_CIDRS).get(*key)
    if cidr is None:
        return EMPTY_PLAN
    if meta.is_deleting(cidr):
        return _deletion(caches, cidr, now)
    actions: list[Action] = []
    if FINALIZER not in meta.finalizers(cidr):
        body = {"metadata": {"finalizers": [FINALIZER]}}
        actions.append(Patch(resource=SERVICE_CIDRS, key=key, body=body, kind="strategic"))
    actions += _condition_patch(cidr, _READY, now)
    return Plan(actions=tuple(actions), last=partial(_failure_event, cidr))


def _deletion(caches: Caches, cidr: ReadOnlyTree, now: datetime) -> Plan:
    if not can_be_deleted(caches, cidr):
        return Plan(actions=tuple(_condition_patch(cidr, _TERMINATING, now)))
    deleted_at = meta.deletion_timestamp(cidr) or now
    if deleted_at + _DELETION_GRACE_PERIOD > now:
        return Plan(requeue_after=deleted_at + _DELETION_GRACE_PERIOD - now)
    if FINALIZER not in meta.finalizers(cidr):
        return EMPTY_PLAN
    removal = RemoveFinalizer(resource=SERVICE_CIDRS, objects=(ObjectRef.of(cidr),), finalizer=FINALIZER)
    return Plan(actions=(removal,))


def _condition_patch(cidr: ReadOnlyTree, desired: Mapping[str, str], now: datetime) -> Iterator[Patch]:
    """Yield the patch of a condition if it differs."""
    present = conditions.get(cidr, "Ready") or {}
    if all(present.get(field, "") == value for field, value in desired.items()):
        return
    body = {
        "apiVersion": SERVICE_CIDRS.api_version,
        "kind": SERVICE_CIDRS.kind,
        "metadata": {"name": meta.name(cidr)},
        "status": {"conditions": [{**desired, "lastTransitionTime": format_time(now)}]},
    }
    yield Patch(
        resource=SERVICE_CIDRS,
        key=Key.of(cidr),
        body=body,
        kind="apply",
        subresource="status",
        field_manager=NAME,
    )


def _failure_event(cidr: ReadOnlyTree, error: ApiError | None) -> tuple[Action, ...]:
    message = "The ServiceCIDR Status can not be set to Ready=True"
    event = RecordEvent(about=cidr, type="Warning", reason="KubernetesServiceCIDRError", message=message)
    return () if error is None else (event,)


def can_be_deleted(caches: Caches, cidr: ReadOnlyTree) -> bool:
    """Return whether every allocated address of a ServiceCIDR is in another range as well."""
    ranges = caches.of(SERVICE_CIDRS)
    own = [*networks(cidr)]
    if all(_has_parent(ranges, cidr, network) for network in own):
        return True
    families = {network.version for network in own}
    for tree in caches.of(IP_ADDRESSES).all():
        address = _managed_address(tree)
        if address is None or address.version not in families:
            continue
        containing = [
            candidate
            for candidate in ranges.all()
            for network in networks(candidate)
            if contains(network, address)
        ]
        if len(containing) == 1 and meta.name(containing[0]) == meta.name(cidr):
            return False
    return True


def _has_parent(ranges: Lister[ReadOnlyTree], cidr: ReadOnlyTree, network: Network) -> bool:
    containing = [
        meta.name(candidate)
        for candidate in ranges.all()
        for other in networks(candidate)
        if other.version == network.version
        and other.overlaps(network)
        and other.prefixlen <= network.prefixlen
    ]
    return containing not in ([], [meta.name(cidr)])


def networks(cidr: ReadOnlyTree) -> Iterator[Network]:
    for text in cidr["spec"].get("cidrs") or ():
        network = _network(text)
        if network is not None:
            yield network


def contains(network: Network, address: Address) -> bool:
    """Return whether a range can allocate an address: not its first one, nor the last one of IPv4."""
    if address.version != network.version or address == network.network_address:
        return False
    return address in network and (address.version == 6 or address != network.broadcast_address)


def _parse(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


_network = memoize(64, max_length=64)(_parse)


def _managed_address(tree: Any) -> Address | None:
    """Return the address of an IPAddress that the API server's allocator created; None for others."""
    if meta.labels(tree).get(MANAGED_BY) != ALLOCATOR:
        return None
    try:
        return ip_address(meta.name(tree))
    except ValueError:
        return None


# --- the keys that a change affects


def _keys_of_cidr(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the key of a range; a new one also affects ranges that overlap with it, which may be deleted now."""
    names = {meta.name(change.last_known)}
    if change.old is None:
        own = [*networks(change.last_known)]
        names |= {
            meta.name(candidate)
            for candidate in caches.of(SERVICE_CIDRS).all()
            for other in networks(candidate)
            if any(other.version == network.version and other.overlaps(network) for network in own)
        }
    return [Key("", name) for name in sorted(names)]


def _keys_of_address(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the ranges that contain a new or deleted address."""
    address = _managed_address(change.last_known) if change.old is None or change.new is None else None
    if address is None:
        return ()
    ranges = caches.of(SERVICE_CIDRS).all()
    return [
        Key("", meta.name(cidr))
        for cidr in ranges
        if any(contains(network, address) for network in networks(cidr))
    ]


SERVICE_CIDR: Final = Controller(
    name=NAME,
    queue="ipaddresses",
    service_account="service-cidrs-controller",
    event_component=NAME,
    watches=(
        Watch(resource=SERVICE_CIDRS, keys=_keys_of_cidr),
        Watch(resource=IP_ADDRESSES, keys=_keys_of_address),
    ),
    reconcile=reconcile,
    needs=(SERVICE_CIDRS, IP_ADDRESSES),
    workers=5,
)

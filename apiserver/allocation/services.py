"""The cluster IPs and node ports that are allocated when a Service is written, and released when it changes or is deleted."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network

from msgspec import Struct

from mockube.apimachinery import conditions, errors, meta, randomness, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import SERVICES, GroupKind, GroupResource
from mockube.apimachinery.names import check_path_segment_name
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.addresses import Network
from mockube.apiserver.kinds.core.service.cluster_ips import check_cluster_ips
from mockube.apiserver.kinds.core.service.strategy import needs_cluster_ip, needs_node_port
from mockube.apiserver.registry.registry import NO_ALLOCATIONS, WRONG_TYPE_ERRORS, Allocations, Backend
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.etcd.kv import Compare, Delete, Put, Target

from . import addresses, families
from .addresses import IP_ADDRESSES
from .node_ports import NodePorts, UsedPortLister, allocate_node_ports, allocated_node_ports, read_node_ports

ENDPOINTS = GroupResource("", "endpoints")
SERVICE_CIDRS = GroupResource("networking.k8s.io", "servicecidrs")
SERVICE = GroupKind("", "Service")
"""The kind in error messages."""


class ServiceAllocator(Struct, frozen=True, kw_only=True):
    """The `Allocator` of Services. The first network has the default IP family."""

    networks: Sequence[Network]
    node_ports: range

    async def allocate(
        self, backend: Backend, new: Tree | None, old: Tree | None, *, dry_run: bool = False
    ) -> Allocations:
        if new is None:
            return await self._release(backend, old or {})
        old_spec = {} if old is None else old["spec"]
        if field_errors := _check_addresses(new["spec"], old_spec or None):
            raise status.invalid(SERVICE, meta.name(new), field_errors)
        if needs_cluster_ip(new["spec"]) and not families.is_well_formed(new["spec"]):
            return NO_ALLOCATIONS
        new["spec"] = dict(new["spec"])
        await self._allocate_addresses(backend, new, old_spec, dry_run=dry_run)
        new_addresses, old_addresses = _allocated_addresses(new["spec"]), _allocated_addresses(old_spec)
        to_allocate, to_release = (
            [address for address in new_addresses if address not in old_addresses],
            [address for address in old_addresses if address not in new_addresses],
        )
        record = await self._allocate_ports(backend, new, old_spec, dry_run=dry_run)
        return Allocations(
            compare=[
                *(
                    Compare(key=_key(backend, address), target=Target.MOD, operand=0)
                    for address in to_allocate
                ),
                *([record.compare(backend)] if record else ()),
            ],
            then=[
                *(_put(backend, address, new) for address in to_allocate),
                *(Delete(key=_key(backend, address)) for address in to_release),
                *([record.put(backend)] if record else ()),
            ],
        )

    async def _release(self, backend: Backend, old: Tree) -> Allocations:
        """Release the addresses and ports of a deleted Service, and delete its Endpoints: a later Service must not get them."""
        deletes = [Delete(key=_key(backend, address)) for address in _allocated_addresses(old["spec"])]
        endpoints = backend.layout.object(backend.rows[ENDPOINTS], meta.namespace(old), meta.name(old))
        deletes.append(Delete(key=endpoints))
        node_ports = allocated_node_ports(old["spec"])
        if not node_ports:
            return Allocations(then=deletes)
        record = await read_node_ports(backend, self.node_ports, _used_port_lister(backend))
        record.release(node_ports)
        return Allocations(compare=[record.compare(backend)], then=[*deletes, record.put(backend)])

    async def release_unreadable(self, backend: Backend, namespace: str, name: str) -> Allocations:
        """Release the addresses and node ports of a Service that cannot be read.

        Its addresses are found by the IPAddress objects that refer to it. The owner of a node port is not recorded:
        ports that no other Service has are released, unless another Service cannot be read either.
        """
        record = await read_node_ports(backend, self.node_ports, _used_port_lister(backend))
        await backend.watch_cache.fresh()  # a later allocation changes the record
        services = backend.rows[SERVICES]
        own = backend.layout.object(services, namespace, name)
        owner = {"resource": "services", "namespace": namespace, "name": name}
        deletes = [
            Delete(key=stored.key)
            for stored in backend.list_cached(IP_ADDRESSES)
            if _is_of(stored.tree()["spec"].get("parentRef"), owner)
        ]
        deletes.append(Delete(key=backend.layout.object(backend.rows[ENDPOINTS], namespace, name)))
        unreadable = backend.watch_cache.unreadable.below(backend.layout.scope(services, ""))
        if [key for key in unreadable if key != own]:
            return Allocations(then=deletes)
        record.release_all_except(
            port for stored in backend.list_cached(SERVICES) for port in _ports_of(stored)
        )
        if not record.is_changed:
            return Allocations(then=deletes)
        return Allocations(compare=[record.compare(backend)], then=[*deletes, record.put(backend)])

    async def _allocate_addresses(
        self, backend: Backend, new: Tree, old_spec: Tree, *, dry_run: bool
    ) -> None:
        """Set the IP families, and a cluster IP for each."""
        spec = new["spec"]
        configured = list(dict.fromkeys(map(addresses.family, self.networks)))
        problems = families.init_ip_families(spec, old_spec or None, configured)
        if problems:
            raise status.invalid(SERVICE, meta.name(new), problems)
        if not needs_cluster_ip(spec) or families.is_headless(spec):
            return
        networks = self._networks(backend)
        cluster_ips, old_addresses = spec.get("clusterIPs", []), _allocated_addresses(old_spec)
        for address in cluster_ips:
            if address not in old_addresses:
                await _check_chosen(backend, new, address, networks, dry_run=dry_run)
        missing_families = spec["ipFamilies"][len(cluster_ips) :]
        addresses_by_family = [
            *cluster_ips,
            *(_allocate_any(backend, family, networks) for family in missing_families),
        ]
        if not dry_run:
            _check_owner(
                new,
                [address for address in addresses_by_family if address not in old_addresses],
                cluster_ips or [""] * len(missing_families),
            )
        spec["clusterIP"], spec["clusterIPs"] = addresses_by_family[0], addresses_by_family

    def _networks(self, backend: Backend) -> Sequence[Network]:
        """Return the networks of ready ServiceCIDRs, those of the flag first; without ServiceCIDRs, the flag's networks.

        A network of the flag needs no condition: this server sets its ServiceCIDR to ready.
        """
        networks_and_statuses = [*_networks_of_service_cidrs(backend)]
        if not networks_and_statuses:
            return self.networks
        ready = dict.fromkeys(
            network
            for network, status in networks_and_statuses
            if status == "True" or (not status and network in self.networks)
        )
        return sorted(ready, key=lambda network: network not in self.networks)

    async def _allocate_ports(
        self, backend: Backend, new: Tree, old_spec: Tree, *, dry_run: bool
    ) -> NodePorts | None:
        """Set the node ports; return their record if this write changes it."""
        old_ports = allocated_node_ports(old_spec)
        if not old_ports and not needs_node_port(new["spec"]):
            return None
        record = await read_node_ports(backend, self.node_ports, _used_port_lister(backend))
        record.dry_run = dry_run
        field_errors = allocate_node_ports(new["spec"], record, old_ports, is_new=not old_spec)
        if field_errors:
            raise status.invalid(SERVICE, meta.name(new), field_errors)
        record.release(old_ports - allocated_node_ports(new["spec"]))
        return record if record.is_changed and not dry_run else None


def _check_addresses(spec: Tree, old_spec: Tree | None) -> Sequence[FieldError]:
    """Return the errors of addresses and families before an allocation. If there are any, no other error is reported."""
    if old_spec is not None and families.keeps_prefer_dual_stack(spec, old_spec):
        return ()
    return [*check_cluster_ips(spec, old_spec)]


def _allocated_addresses(spec: Tree) -> Sequence[str]:
    """Return the cluster IPs that are allocated to a Service."""
    if not spec or not needs_cluster_ip(spec) or families.is_headless(spec):
        return ()
    cluster_ips: Sequence[str] = spec.get("clusterIPs", ())
    return cluster_ips


def _used_port_lister(backend: Backend) -> UsedPortLister:
    """Return a function that lists the node ports of all Services: the content of a new record."""

    async def list_used_ports() -> Iterator[int]:
        await backend.watch_cache.fresh()
        services = backend.list_cached(SERVICES)
        return (port for stored in services for port in _ports_of(stored))

    return list_used_ports


def _ports_of(stored: StoredObject) -> frozenset[int]:
    return allocated_node_ports(stored.tree()["spec"])


def _is_of(reference: Tree | None, owner: Mapping[str, str]) -> bool:
    return reference is not None and all(reference.get(field) == value for field, value in owner.items())


def _networks_of_service_cidrs(backend: Backend) -> Iterator[tuple[Network, str]]:
    """Yield each network with its readiness: the status of the condition, "" without one, "False" during the deletion."""
    for stored in backend.list_cached(SERVICE_CIDRS):
        tree = stored.tree()
        try:
            condition = conditions.get(tree, "Ready") or {}
            readiness = "False" if meta.is_deleting(tree) else condition.get("status", "")
            yield from [(ip_network(cidr), readiness) for cidr in tree["spec"].get("cidrs") or ()]
        except WRONG_TYPE_ERRORS as error:
            backend.watch_cache.report_malformed(stored, error)


def _allocate_any(backend: Backend, family: str, networks: Sequence[Network]) -> str:
    for network in networks:
        if addresses.family(network) == family:
            free_address = addresses.find_free_address(backend, network, backend.random)
            if free_address:
                return free_address
    raise status.internal_error("failed to allocate a serviceIP: range is full")


async def _check_chosen(
    backend: Backend, service: Tree, address: str, networks: Sequence[Network], *, dry_run: bool
) -> None:
    """Raise an error if an address that the client chose is not free; a dry run checks only the range."""
    version = ip_address(address).version
    network = next((candidate for candidate in networks if candidate.version == version), None)
    if dry_run and network is not None:
        if addresses.contains(network, address):
            return
        problem = (
            f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"
        )
    elif not any(addresses.contains(network, address) for network in networks):
        problem = "the provided network does not match the current range"
    elif await backend.find(backend.rows[IP_ADDRESSES], "", address) is not None:
        problem = "provided IP is already allocated"
    else:
        return
    path, cluster_ips = ROOT.child("spec", "clusterIPs"), service["spec"]["clusterIPs"]
    field_error = errors.invalid(path, cluster_ips, f"failed to allocate IP {address}: {problem}")
    raise status.invalid(SERVICE, meta.name(service), [field_error])


def _check_owner(service: Tree, new_addresses: Sequence[str], cluster_ips: Sequence[str]) -> None:
    """Raise an error if the Service's name is invalid in an IPAddress, which is created before the Service is validated."""
    name, path = meta.name(service), ROOT.child("spec", "parentRef", "name")
    field_errors = [errors.invalid(path, name, problem) for problem in check_path_segment_name(name)]
    if not name:
        field_errors = [errors.required(path)]
    if not new_addresses or not field_errors:
        return
    problem = status.invalid(GroupKind(IP_ADDRESSES.group, "IPAddress"), new_addresses[0], field_errors)
    address_text = f" {new_addresses[0]}" if new_addresses[0] in cluster_ips else ""
    field_error = errors.invalid(
        ROOT.child("spec", "clusterIPs"), cluster_ips, f"failed to allocate IP{address_text}: {problem}"
    )
    raise status.invalid(SERVICE, name, [field_error])


def _key(backend: Backend, address: str) -> bytes:
    return backend.layout.object(backend.rows[IP_ADDRESSES], "", address)


def _put(backend: Backend, address: str, service: Tree) -> Put:
    record = addresses.record(
        address,
        namespace=meta.namespace(service),
        name=meta.name(service),
        uid=randomness.uid(backend.random),
        now=backend.clock.now(),
    )
    return backend.put(_key(backend, address), canonical(record))

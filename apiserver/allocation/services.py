"""What a Service is given when it is written, and gives back when it changes or goes."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network

from msgspec import Struct

from mockube.apimachinery import chance, conditions, errors, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.names import check_path_segment_name
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.allocation import addresses, ports
from mockube.apiserver.allocation.addresses import IP_ADDRESSES
from mockube.apiserver.allocation.families import is_headless, is_well_formed, settle, stays_preferring_dual
from mockube.apiserver.allocation.node_ports import held_node_ports, settle_node_ports
from mockube.apiserver.kinds.common.addresses import Network
from mockube.apiserver.kinds.core.service.cluster_ips import check_cluster_ips
from mockube.apiserver.kinds.core.service.strategy import needs_cluster_ip, needs_node_port
from mockube.apiserver.registry.backend import NO_CLAIMS, OF_WRONG_TYPES, Backend, Claims
from mockube.apiserver.storage.stored import Stored, canonical
from mockube.etcd.kv import Compare, Delete, Put, Target

SERVICES, ENDPOINTS = GroupResource("", "services"), GroupResource("", "endpoints")
SERVICE_CIDRS = GroupResource("networking.k8s.io", "servicecidrs")
SERVICE = GroupKind("", "Service")
"""As an error about one names it."""


class ServiceAllocator(Struct, frozen=True, kw_only=True):
    """The `Claimant` of Services. The first network is of the family that Services are of by default."""

    networks: Sequence[Network]
    node_ports: range

    async def claim(
        self, backend: Backend, new: Tree | None, old: Tree | None, *, dry_run: bool = False
    ) -> Claims:
        if new is None:
            return await self._release(backend, old or {})
        before = {} if old is None else old["spec"]
        if wrong := _check_addresses(new["spec"], before or None):
            raise status.invalid(SERVICE, meta.name(new), wrong)
        if not is_well_formed(new["spec"]):
            return NO_CLAIMS
        new["spec"] = dict(new["spec"])
        await self._settle_addresses(backend, new, before, dry_run=dry_run)
        held, had = _held_addresses(new["spec"]), _held_addresses(before)
        taken, freed = [one for one in held if one not in had], [one for one in had if one not in held]
        record = await self._settle_ports(backend, new, before, dry_run=dry_run)
        return Claims(
            compare=[
                *(Compare(key=_key(backend, one), target=Target.MOD, operand=0) for one in taken),
                *([record.compare(backend)] if record else ()),
            ],
            then=[
                *(_put(backend, one, new) for one in taken),
                *(Delete(key=_key(backend, one)) for one in freed),
                *([record.put(backend)] if record else ()),
            ],
        )

    async def _release(self, backend: Backend, old: Tree) -> Claims:
        """Everything goes with the Service, and its Endpoints go too, so that no other Service finds them."""
        gone = [Delete(key=_key(backend, one)) for one in _held_addresses(old["spec"])]
        endpoints = backend.layout.object(backend.rows[ENDPOINTS], meta.namespace(old), meta.name(old))
        gone.append(Delete(key=endpoints))
        held = held_node_ports(old["spec"])
        if not held:
            return Claims(then=gone)
        record = await ports.read(backend, self.node_ports, _all_held(backend))
        record.free(held)
        return Claims(compare=[record.compare(backend)], then=[*gone, record.put(backend)])

    async def reclaim(self, backend: Backend, namespace: str, name: str) -> Claims:
        """Give back what a Service had been given that cannot be read.

        Each of its addresses names it. Of node ports it is not known whose they are: those that no other Service has
        are free then, unless there is another one that cannot be read.
        """
        record = await ports.read(backend, self.node_ports, _all_held(backend))
        await backend.watch_cache.fresh()  # who takes a port from now on changes the record
        services = backend.rows[SERVICES]
        own = backend.layout.object(services, namespace, name)
        owner = {"resource": "services", "namespace": namespace, "name": name}
        gone = [
            Delete(key=stored.key)
            for stored in backend.all_seen(IP_ADDRESSES)
            if _is_of(stored.tree()["spec"].get("parentRef"), owner)
        ]
        gone.append(Delete(key=backend.layout.object(backend.rows[ENDPOINTS], namespace, name)))
        unreadable = backend.watch_cache.unreadable.below(backend.layout.scope(services, ""))
        if [key for key in unreadable if key != own]:
            return Claims(then=gone)
        record.free_all_but(port for stored in backend.all_seen(SERVICES) for port in _ports_of(stored))
        if not record.is_changed:
            return Claims(then=gone)
        return Claims(compare=[record.compare(backend)], then=[*gone, record.put(backend)])

    async def _settle_addresses(self, backend: Backend, new: Tree, before: Tree, *, dry_run: bool) -> None:
        """Fill in the families, and an address of each."""
        spec = new["spec"]
        configured = list(dict.fromkeys(map(addresses.family, self.networks)))
        wrong = settle(spec, before or None, configured)
        if wrong:
            raise status.invalid(SERVICE, meta.name(new), wrong)
        if not needs_cluster_ip(spec) or is_headless(spec):
            return
        networks = [*self.networks, *_more_networks(backend)]
        given, had = spec.get("clusterIPs", []), _held_addresses(before)
        for address in given:
            if address not in had:
                await _check_chosen(backend, new, address, networks, dry_run=dry_run)
        lacking = spec["ipFamilies"][len(given) :]
        found = [*given, *(_any(backend, family, networks) for family in lacking)]
        if not dry_run:
            _check_owner(new, [one for one in found if one not in had], given or [""] * len(lacking))
        spec["clusterIP"], spec["clusterIPs"] = found[0], found

    async def _settle_ports(
        self, backend: Backend, new: Tree, before: Tree, *, dry_run: bool
    ) -> ports.NodePorts | None:
        """Fill in the node ports; answers with the record of them, if this write changes it."""
        had = held_node_ports(before)
        if not had and not needs_node_port(new["spec"]):
            return None
        record = await ports.read(backend, self.node_ports, _all_held(backend))
        record.dry_run = dry_run
        wrong = settle_node_ports(new["spec"], record, had, is_new=not before)
        if wrong:
            raise status.invalid(SERVICE, meta.name(new), wrong)
        record.free(had - held_node_ports(new["spec"]))
        return record if record.is_changed and not dry_run else None


def _check_addresses(spec: Tree, before: Tree | None) -> Sequence[FieldError]:
    """What is wrong with addresses and families before any is given out; then nothing else is told."""
    if before is not None and stays_preferring_dual(spec, before):
        return ()
    return [*check_cluster_ips(spec, before)]


def _held_addresses(spec: Tree) -> Sequence[str]:
    """The addresses that a Service has been given."""
    if not spec or not needs_cluster_ip(spec) or is_headless(spec):
        return ()
    held: Sequence[str] = spec.get("clusterIPs", ())
    return held


def _all_held(backend: Backend) -> ports.Held:
    """The node ports of every Service there is: what a record must begin with where there is none."""

    async def held() -> Iterator[int]:
        await backend.watch_cache.fresh()
        services = backend.all_seen(SERVICES)
        return (port for stored in services for port in _ports_of(stored))

    return held


def _ports_of(stored: Stored) -> frozenset[int]:
    return held_node_ports(stored.tree()["spec"])


def _is_of(reference: Tree | None, owner: Mapping[str, str]) -> bool:
    return reference is not None and all(reference.get(field) == value for field, value in owner.items())


def _more_networks(backend: Backend) -> Iterator[Network]:
    """Those that ServiceCIDRs add to a running cluster."""
    for stored in backend.all_seen(SERVICE_CIDRS):
        tree = stored.tree()
        if conditions.is_true(tree, "Ready") and not meta.is_deleting(tree):
            try:
                yield from [ip_network(cidr) for cidr in tree["spec"].get("cidrs") or ()]
            except OF_WRONG_TYPES as error:
                backend.watch_cache.report_malformed(stored, error)


def _any(backend: Backend, family: str, networks: Sequence[Network]) -> str:
    for network in networks:
        if addresses.family(network) == family:
            found = addresses.free(backend, network, backend.chance)
            if found:
                return found
    raise status.internal_error("failed to allocate a serviceIP: range is full")


async def _check_chosen(
    backend: Backend, service: Tree, address: str, networks: Sequence[Network], *, dry_run: bool
) -> None:
    """Refuse an address that a client chose and cannot have; a dry run looks at the range alone."""
    if dry_run:
        network = next((one for one in networks if one.version == ip_address(address).version), networks[0])
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
    path, given = ROOT.child("spec", "clusterIPs"), service["spec"]["clusterIPs"]
    wrong = errors.invalid(path, given, f"failed to allocate IP {address}: {problem}")
    raise status.invalid(SERVICE, meta.name(service), [wrong])


def _check_owner(service: Tree, taken: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a name that the object of an address cannot say: that object is made before the Service is checked."""
    name, path = meta.name(service), ROOT.child("spec", "parentRef", "name")
    wrong = [errors.invalid(path, name, problem) for problem in check_path_segment_name(name)]
    if not name:
        wrong = [errors.required(path)]
    if not taken or not wrong:
        return
    problem = status.invalid(GroupKind(IP_ADDRESSES.group, "IPAddress"), taken[0], wrong)
    which = f" {taken[0]}" if taken[0] in given else ""
    refused = errors.invalid(
        ROOT.child("spec", "clusterIPs"), given, f"failed to allocate IP{which}: {problem}"
    )
    raise status.invalid(SERVICE, name, [refused])


def _key(backend: Backend, address: str) -> bytes:
    return backend.layout.object(backend.rows[IP_ADDRESSES], "", address)


def _put(backend: Backend, address: str, service: Tree) -> Put:
    record = addresses.record(
        address,
        namespace=meta.namespace(service),
        name=meta.name(service),
        uid=chance.uid(backend.chance),
        now=backend.clock.now(),
    )
    return backend.put(_key(backend, address), canonical(record))

"""Reject nodes where the volumes of a pod are not accessible, or its claims cannot be bound.

Upstream: plugins/volumebinding, volumerestrictions and volumezone.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_ZONE
from mockube.client.resources import Key
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.node_traits import (
    NO_TRAITS,
    NeedsReference,
    NodeTraits,
    label_keys,
    traits_of_labels,
    traits_of_selector,
)
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.volumes import (
    PodVolumeClaims,
    Storage,
    assumed_volume,
    claims_of,
    is_reachable,
    required_affinity,
    selected_node,
    topology_selectors,
    uses_claim_alone,
)

from .filter import Check, Rejection

# --- VolumeRestrictions

_DISK_CONFLICT: Final = Rejection(("node(s) had no available disk",))
_IN_USE: Final = Rejection(
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    )
)


def _conflict_unless_read_only(
    is_same: Callable[[ReadOnlyTree, ReadOnlyTree], bool],
) -> Callable[[ReadOnlyTree, ReadOnlyTree], bool]:
    return lambda disk, other: is_same(disk, other) and not (disk.get("readOnly") and other.get("readOnly"))


def _is_same_image(disk: ReadOnlyTree, other: ReadOnlyTree) -> bool:
    is_same = all(disk.get(field) == other.get(field) for field in ("pool", "image"))
    return is_same and not {*disk["monitors"]}.isdisjoint(other["monitors"])


_DISKS: Final[Mapping[str, Callable[[ReadOnlyTree, ReadOnlyTree], bool]]] = {
    "gcePersistentDisk": _conflict_unless_read_only(lambda disk, other: disk["pdName"] == other["pdName"]),
    "awsElasticBlockStore": lambda disk, other: disk["volumeID"] == other["volumeID"],
    "iscsi": _conflict_unless_read_only(lambda disk, other: disk["iqn"] == other["iqn"]),
    "rbd": _conflict_unless_read_only(_is_same_image),
}
"""Whether two volumes of pods on one node conflict, by their source."""


def volume_restrictions(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    """Reject nodes with a disk in use, and all nodes while another pod uses a claim that only one pod may use.

    Preemption may end that pod.
    """
    namespace = pod.view.key.namespace
    for name in pod.claims:
        if snapshot.storage.claims.get(namespace, name) is None:
            return Rejection((f'persistentvolumeclaim "{name}" not found',), is_unresolvable=True)
    claims = [
        Key(namespace, name)
        for name in pod.claims
        if uses_claim_alone(snapshot.storage.claims.get(namespace, name))
    ]
    disks = _disks_of(pod)
    if not claims and not disks:
        return None
    users = {name for claim in claims for name in snapshot.users_of_claim(claim)}

    def check(node: NodeInfo) -> Rejection | None:
        if disks and any(_conflicts(disks, _disks_of(other)) for other in node.pods.values()):
            return _DISK_CONFLICT
        # The node may be one from which preemption has removed pods.
        is_used = users - {node.name} or any(claim in node.claim_counts for claim in claims)
        return _IN_USE if is_used else None

    return check


def volume_restrictions_traits(pod: PodInfo, _: ClusterSnapshot) -> NodeTraits:
    """A claim of one pod rejects all nodes or none; disks are compared with those of the pods on a node."""
    if _disks_of(pod):
        raise NeedsReference
    return NO_TRAITS


_Disk = tuple[str, ReadOnlyTree]


def _disks_of(pod: PodInfo) -> list[_Disk]:
    volumes = pod.spec.get("volumes") or ()
    return [(source, volume[source]) for volume in volumes for source in _DISKS if source in volume]


def _conflicts(disks: list[_Disk], others: list[_Disk]) -> bool:
    return any(
        source == other_source and _DISKS[source](disk, other)
        for source, disk in disks
        for other_source, other in others
    )


# --- VolumeBinding

_NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
_OLD_NODE_CONFLICT: Final = "node(s) had volume node affinity conflict"
"""The reason before 1.33."""
_NO_SUCH_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_MAX_CANDIDATES: Final = 100
"""With more candidates for a claim, looking at the labels that they select costs more than looking at nodes."""


def volume_binding(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    claims = claims_of(pod, snapshot.storage)
    if isinstance(claims, str):
        return Rejection((claims,), is_unresolvable=True)
    return _check_of(claims, snapshot) if claims else None


def _check_of(claims: PodVolumeClaims, snapshot: ClusterSnapshot) -> Check:
    conflict = _OLD_NODE_CONFLICT if snapshot.gates.is_before("1.33") else _NODE_CONFLICT
    volumes = [snapshot.storage.volumes.get("", claim["spec"]["volumeName"]) for claim in claims.bound]

    def bound_problem(node: NodeInfo) -> str:
        for volume in volumes:
            if volume is None:
                return _NO_SUCH_VOLUME
            if not is_reachable(volume, node.node):
                return conflict
        return ""

    def check(node: NodeInfo) -> Rejection | None:
        bindings = claims.assign(node.node, snapshot.storage)
        reasons = [bound_problem(node), bindings if isinstance(bindings, str) else ""]
        reasons = [reason for reason in reasons if reason]
        return Rejection(tuple(reasons), is_unresolvable=True) if reasons else None

    return check


def volume_binding_traits(pod: PodInfo, snapshot: ClusterSnapshot) -> NodeTraits:
    """Return the traits for the claims of a pod that has some. Raises NeedsReference."""
    claims = claims_of(pod, snapshot.storage)
    assert not isinstance(claims, str)  # the filter has rejected all nodes then
    traits = NO_TRAITS
    for claim_traits in _traits_of_claims(claims, snapshot.storage):
        traits = traits.join(claim_traits)
    return traits


def _traits_of_claims(claims: PodVolumeClaims, storage: Storage) -> Iterator[NodeTraits]:
    for claim in claims.bound:
        volume = storage.volumes.get("", claim["spec"]["volumeName"])
        if volume is not None:
            yield traits_of_selector(required_affinity(volume))
    for claim in claims.unbound:
        yield _traits_of_unbound(claims, claim, storage)


def _traits_of_unbound(claims: PodVolumeClaims, claim: ReadOnlyTree, storage: Storage) -> NodeTraits:
    volume = assumed_volume(claim, storage)
    if volume is not None:
        return traits_of_selector(required_affinity(volume))
    name = selected_node(claim, storage)
    if name is not None:
        return NodeTraits(names=frozenset({name}))
    candidates = claims.candidates(claim, storage)
    if candidates.has_hosts or len(candidates.of_many_hosts) > _MAX_CANDIDATES:
        raise NeedsReference
    keys: set[str] = set()
    for volume in candidates.of_many_hosts:
        keys.update(label_keys(required_affinity(volume)))
    for selector in topology_selectors(claim, storage):
        keys.update(_keys_of_expressions(selector))
    return traits_of_labels(keys)


def _keys_of_expressions(selector: ReadOnlyTree) -> Iterator[str]:
    """Yield the keys of a label selector or of a term of allowedTopologies."""
    yield from selector.get("matchLabels") or ()
    for name in ("matchExpressions", "matchLabelExpressions"):
        yield from (expression["key"] for expression in selector.get(name) or ())


# --- VolumeZone

_BETA_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": LABEL_ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The present labels by their former names."""
_TOPOLOGY_LABELS: Final = (*_BETA_LABELS, *_BETA_LABELS.values())
_ZONE_DELIMITER: Final = "__"
_NO_ZONE: Final = Rejection(("node(s) had no available volume zone",), is_unresolvable=True)


def volume_zone(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    """Reject nodes whose labels for zone and region are not those of a bound volume. Nodes without such labels fit."""
    zones: list[tuple[str, frozenset[str]]] = []
    for name in pod.claims:
        claim = snapshot.storage.claims.get(pod.view.key.namespace, name)
        volume_name = "" if claim is None else claim["spec"].get("volumeName") or ""
        if volume_name:
            volume = snapshot.storage.volumes.get("", volume_name)
            if volume is None:
                return Rejection((f'persistentvolume "{volume_name}" not found',), is_unresolvable=True)
            zones += _zones_of(volume)
    if not zones:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        if not any(label in node.labels for label in _TOPOLOGY_LABELS):
            return None
        for label, values in zones:
            if node.labels.get(label, node.labels.get(_BETA_LABELS.get(label, label))) not in values:
                return _NO_ZONE
        return None

    return check


def volume_zone_traits(_: PodInfo, __: ClusterSnapshot) -> NodeTraits:
    return NodeTraits(label_keys=frozenset(_TOPOLOGY_LABELS))


def _zones_of(volume: ReadOnlyTree) -> list[tuple[str, frozenset[str]]]:
    labels = meta.labels(volume)
    values = {
        label: [zone.strip() for zone in labels[label].split(_ZONE_DELIMITER)]
        for label in _TOPOLOGY_LABELS
        if label in labels
    }
    return [(label, frozenset(zones)) for label, zones in values.items() if all(zones)]

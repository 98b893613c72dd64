"""Score nodes by the storage that a pod leaves free. Upstream: plugins/volumebinding, scorer."""

from collections.abc import Sequence

from mockube.apimachinery import quantity
from mockube.apimachinery.volumes import storage_class_name
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.volumes import ClaimBinding, claims_of
from mockube.controller_manager.workloads.volumes import capacity, request

from .score import MAX_NODE_SCORE, round_half_up


def volume_capacity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> list[int] | None:
    """Prefer nodes where the volumes of the pod's claims, or the space for new ones, have the most room."""
    if not snapshot.gates.is_on("StorageCapacityScoring"):
        return None
    claims = claims_of(pod, snapshot.storage)
    if isinstance(claims, str) or not claims.unbound:
        return None
    scores = []
    for node in nodes:
        bindings = claims.assign(node.node, snapshot.storage)
        scores.append(0 if isinstance(bindings, str) else _score(bindings))
    return scores


def _score(bindings: Sequence[ClaimBinding]) -> int:
    """Return the mean score of the storage classes: of existing volumes if there are some, else of new ones."""
    existing = [binding for binding in bindings if binding.volume is not None]
    requested: dict[str, int] = {}
    capacities: dict[str, int] = {}
    for binding in existing or bindings:
        name = storage_class_name(binding.claim)
        if binding.volume is not None:
            capacities[name] = capacities.get(name, 0) + capacity(binding.volume).scaled_value()
        elif binding.capacity is not None:
            # The capacity of a class is the same for all its claims.
            capacities[name] = quantity.from_json(binding.capacity.get("capacity")).scaled_value()
        else:
            continue
        requested[name] = requested.get(name, 0) + request(binding.claim).scaled_value()
    shares = [_free_share(requested[name], capacities[name]) for name in capacities]
    return round_half_up(sum(shares) / len(shares)) if shares else 0


def _free_share(requested: int, available: int) -> int:
    if available == 0 or requested > available:
        return 0
    return MAX_NODE_SCORE - requested * MAX_NODE_SCORE // available

"""Score nodes by the storage that a pod leaves free. Upstream: plugins/volumebinding, scorer."""

from collections.abc import Sequence

from mockube.apimachinery import quantity
from mockube.apimachinery.volumes import storage_class_name
from mockube.client.component_helpers.volumes import capacity, request
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import FALLING_SHAPE, Shape, broken_linear
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.volumes import ClaimBinding, claims_of

from .score import round_half_up, utilization


def volume_capacity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo], shape: Shape = FALLING_SHAPE
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
        scores.append(0 if isinstance(bindings, str) else _score(bindings, shape))
    return scores


def _score(bindings: Sequence[ClaimBinding], shape: Shape) -> int:
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
    values = [broken_linear(shape, utilization(requested[name], capacities[name])) for name in capacities]
    return round_half_up(sum(values) / len(values)) if values else 0

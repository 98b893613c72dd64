"""The TTL controller: it annotates nodes with the time for which kubelets may cache Secrets and ConfigMaps."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.client.cache.store import Caches
from mockube.client.kinds import NODES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Patch, Plan
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class _Boundary(NamedTuple):
    minimum: int
    maximum: float
    seconds: int


_BOUNDARIES: Final = (
    _Boundary(0, 100, 0),
    _Boundary(90, 500, 15),
    _Boundary(450, 1000, 30),
    _Boundary(900, 2000, 60),
    _Boundary(1800, float("inf"), 300),
)


def seconds_for(nodes: int, current: int | None) -> int:
    """Return the TTL for a number of nodes. The current TTL stays until the number is well beyond its boundary."""
    for boundary in _BOUNDARIES:
        if boundary.seconds == current and boundary.minimum <= nodes <= boundary.maximum:
            return boundary.seconds
    return next(boundary.seconds for boundary in _BOUNDARIES if nodes <= boundary.maximum)


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    nodes = caches.of(NODES)
    node = nodes.get("", key.name)
    if node is None:
        return EMPTY_PLAN
    text = meta.annotations(node).get(ANNOTATION, "")
    current = int(text) if text.isdecimal() else None
    desired = seconds_for(len(nodes), current)
    if desired == current:
        return EMPTY_PLAN
    body = {"metadata": {"annotations": {ANNOTATION: str(desired)}}}
    return Plan(actions=(Patch(resource=NODES, key=key, body=body, kind="strategic"),))


NODE_TTL: Final = Controller(
    name="ttl-controller",
    queue="ttlcontroller",
    service_account="ttl-controller",
    # Nodes are often created together, and each change of their number could change the annotations.
    watches=(Watch(resource=NODES, keys=key_of_existing_object, delay=timedelta(seconds=1)),),
    reconcile=reconcile,
    workers=5,
)

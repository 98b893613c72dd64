"""In what ReplicaSets and ReplicationControllers differ: facts, so that nothing else has to know which one it is at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from apimachinery import labels
from apimachinery.labels import Selector
from controller_manager.kinds import REPLICA_SETS, REPLICATION_CONTROLLERS
from controller_manager.runtime.resource import Resource, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    resource: Resource[Tree]
    selector: Callable[[Tree], Selector]
    """Of an object; it may raise `SelectorError`."""
    counts_terminating: bool
    """Its status has `terminatingReplicas`."""


def _label_selector(replica_set: Tree) -> Selector:
    return labels.from_label_selector(replica_set["spec"].get("selector"))


def _label_set(controller: Tree) -> Selector:
    chosen = controller["spec"].get("selector")
    return labels.from_set(chosen) if chosen else labels.NOTHING


REPLICA_SET_FAMILY: Final = Family(resource=REPLICA_SETS, selector=_label_selector, counts_terminating=True)
REPLICATION_CONTROLLER_FAMILY: Final = Family(
    resource=REPLICATION_CONTROLLERS, selector=_label_set, counts_terminating=False
)

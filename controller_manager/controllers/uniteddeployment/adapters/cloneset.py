"""Subsets that are CloneSets. A partition is a number of pods or a percentage of them, and is always written."""

from collections.abc import Sequence
from typing import Final

from apimachinery import intstr
from apimachinery.intstr import IntOrStringError
from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter
from controller_manager.kinds import CLONE_SETS
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView


def _strategy(spec: Tree) -> Tree:
    return spec.get("updateStrategy") or {}


def _partition(workload: Tree, _: Sequence[PodView]) -> int:
    spec = workload["spec"]
    kept, replicas = _strategy(spec).get("partition") or 0, spec.get("replicas")
    try:
        return intstr.scaled(kept, 1 if replicas is None else replicas, round_up=True)
    except IntOrStringError:
        return 0


def _partitioned(spec: Tree, kept: int) -> Tree:
    return {**spec, "updateStrategy": {**_strategy(spec), "partition": kept}}


def _unavailability(_: Tree) -> tuple[str, ...]:
    return "updateStrategy", "maxUnavailable"


CLONE_SET_SUBSETS: Final = Adapter(
    type="CloneSet",
    template="cloneSetTemplate",
    resource=CLONE_SETS,
    partition=_partition,
    partitioned=_partitioned,
    unavailability=_unavailability,
)

"""Subsets with CloneSets. A partition is a number of pods or a percentage of them, and is always written."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import intstr
from mockube.apimachinery.intstr import IntOrStringError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.packs.kruise.kinds import CLONE_SETS

from .adapter import Adapter


def _strategy(spec: ReadOnlyTree) -> ReadOnlyTree:
    return spec.get("updateStrategy") or {}


def _partition(workload: ReadOnlyTree, _: Sequence[PodView]) -> int:
    spec = workload["spec"]
    partition, replicas = _strategy(spec).get("partition") or 0, spec.get("replicas")
    try:
        return intstr.scaled_value(partition, 1 if replicas is None else replicas, round_up=True)
    except IntOrStringError:
        return 0


def _with_partition(spec: ReadOnlyTree, partition: int) -> ReadOnlyTree:
    return {**spec, "updateStrategy": {**_strategy(spec), "partition": partition}}


def _max_unavailable_path(_: ReadOnlyTree) -> tuple[str, ...]:
    return "updateStrategy", "maxUnavailable"


CLONE_SET_SUBSETS: Final = Adapter(
    type="CloneSet",
    template="cloneSetTemplate",
    resource=CLONE_SETS,
    partition=_partition,
    with_partition=_with_partition,
    max_unavailable_path=_max_unavailable_path,
)

"""Subsets that are OpenKruise's StatefulSets. A partition is a number of pods; the type of the update is not written."""

from typing import Final

from controller_manager.controllers.uniteddeployment.adapters import ordinals
from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter
from controller_manager.kinds import ADVANCED_STATEFUL_SETS
from controller_manager.runtime.resource import Tree


def _partitioned(spec: Tree, kept: int) -> Tree:
    return spec if ordinals.is_on_delete(spec) else ordinals.with_partition(spec, kept)


ADVANCED_STATEFUL_SET_SUBSETS: Final = Adapter(
    type="AdvancedStatefulSet",
    template="advancedStatefulSetTemplate",
    resource=ADVANCED_STATEFUL_SETS,
    partition=ordinals.partition,
    partitioned=_partitioned,
    unavailability=ordinals.unavailability,
)

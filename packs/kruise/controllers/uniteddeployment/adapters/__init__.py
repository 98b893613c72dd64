"""The kinds of workloads of subsets, behind one interface.

A module belongs here if it describes one of these kinds; no other module may depend on a workload's kind.
"""

from typing import Final

from mockube.packs.kruise.controllers.uniteddeployment.adapters.adapter import Adapter
from mockube.packs.kruise.controllers.uniteddeployment.adapters.cloneset import CLONE_SET_SUBSETS
from mockube.packs.kruise.controllers.uniteddeployment.adapters.deployment import (
    DEPLOYMENT_SUBSETS,
)
from mockube.packs.kruise.controllers.uniteddeployment.adapters.statefulset import (
    ADVANCED_STATEFUL_SET_SUBSETS,
    STATEFUL_SET_SUBSETS,
)

ADAPTERS: Final[tuple[Adapter, ...]] = (
    STATEFUL_SET_SUBSETS,
    ADVANCED_STATEFUL_SET_SUBSETS,
    CLONE_SET_SUBSETS,
    DEPLOYMENT_SUBSETS,
)
"""All kinds of workloads of subsets. If a template has several, the first one is used."""

"""The kinds of workloads of subsets, behind one interface.

A module belongs here if it describes one of these kinds; no other module may depend on a workload's kind.
"""

from typing import Final

from .adapter import Adapter
from .cloneset import CLONE_SET_SUBSETS
from .deployment import DEPLOYMENT_SUBSETS
from .statefulset import ADVANCED_STATEFUL_SET_SUBSETS, STATEFUL_SET_SUBSETS

ADAPTERS: Final[tuple[Adapter, ...]] = (
    STATEFUL_SET_SUBSETS,
    ADVANCED_STATEFUL_SET_SUBSETS,
    CLONE_SET_SUBSETS,
    DEPLOYMENT_SUBSETS,
)
"""All kinds of workloads of subsets. If a template has several, the first one is used."""

"""What a filter is.

It is asked once for a pod, with the whole world, and answers a check for single nodes, None if it has nothing against
any, or a refusal where none will do. The first filter that refuses a node gives the reasons. The order is upstream's.
"""

from collections.abc import Callable
from typing import NamedTuple

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo


class Refusal(NamedTuple):
    reasons: tuple[str, ...]
    is_final: bool = False
    """No pod that goes would change it."""


Check = Callable[[NodeInfo], Refusal | None]
Filter = Callable[[PodInfo, World], Check | Refusal | None]

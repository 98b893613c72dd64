"""What a score is: it gives each node 0 to 100, or None where it makes no difference. The weights are upstream's."""

from collections.abc import Callable, Sequence
from typing import Final

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

BEST: Final = 100

Score = Callable[[PodInfo, World, Sequence[NodeInfo]], Sequence[float] | None]


def normalized(raw: Sequence[float], *, less_is_better: bool = False) -> list[float]:
    """Spread so that the highest is 100 — or, where less is better, the lowest."""
    highest = max(raw, default=0)
    if highest == 0:
        return [BEST if less_is_better else 0.0] * len(raw)
    scaled = [value * BEST / highest for value in raw]
    return [BEST - value for value in scaled] if less_is_better else scaled

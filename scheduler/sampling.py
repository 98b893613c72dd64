"""Look for feasible nodes only until there are enough: upstream's percentageOfNodesToScore. Pure.

Upstream: schedule_one.go (numFeasibleNodesToFind), backend/cache/node_tree.go.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final

from mockube.apimachinery.wellknown import LABEL_REGION, LABEL_ZONE

from .nodeinfo import NodeInfo

_MIN_NODES: Final = 100
"""The number of feasible nodes that are never enough: fewer than these are always looked for."""
_MIN_PERCENTAGE: Final = 5


def enough_nodes(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are enough; a percentage of 0 chooses one by the number of nodes."""
    if nodes < _MIN_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * share // 100, _MIN_NODES)


class NodeSample:
    """The nodes that are checked for one pod: from a first one on, until enough are feasible."""

    def __init__(self, first: int, enough: int) -> None:
        self._first = first
        self.enough = enough
        self.checked = 0
        """The number of nodes that `walk` has yielded."""

    def walk(self, nodes: Sequence[NodeInfo]) -> Iterator[NodeInfo]:
        for offset in range(len(nodes)):
            self.checked += 1
            yield nodes[(self._first + offset) % len(nodes)]


class NodeSampler:
    """Lets each search begin where the last one ended, so that all nodes get their turn."""

    def __init__(self) -> None:
        self._first = 0

    def sample(self, percentage: int | None, nodes: int) -> NodeSample | None:
        """Return the sample of the next search; None if it looks at all nodes."""
        if percentage is None or not nodes:
            return None
        return NodeSample(self._first % nodes, enough_nodes(percentage, nodes))

    def take(self, sample: NodeSample | None, nodes: int) -> None:
        """Continue after the nodes that a search has checked."""
        if sample is not None:
            self._first = (self._first + sample.checked) % nodes


def in_turn_by_zone(nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
    """Return nodes in the order in which they are checked: one of each zone, then the second of each, and so on."""
    zones: defaultdict[tuple[str, str], list[NodeInfo]] = defaultdict(list)
    for node in nodes:
        zones[node.labels.get(LABEL_REGION, ""), node.labels.get(LABEL_ZONE, "")].append(node)
    rounds = zip_longest(*zones.values())
    return [node for node in chain.from_iterable(rounds) if node is not None]

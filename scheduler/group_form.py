"""The form of a plugin that judges groups of nodes, whose counts are kept up to date as nodes change. `pod_class` has the groups.

The other form of a plugin, a function of the whole snapshot, is the reference: both judge every node alike.
"""

from collections.abc import Hashable
from typing import Any, Protocol

from .nodeinfo import NodeInfo


class GroupForm(Protocol):
    """What a filter and a score have in common. What it returns depends on the state of the node only, not on its name."""

    def contribution(self, node: NodeInfo) -> Any:
        """Return what the node adds to the counts of the whole cluster; None if it adds nothing."""

    def part(self, node: NodeInfo, contribution: Any, /) -> Hashable:
        """Return what the plugin judges of a node, which adds a contribution: nodes of equal parts are judged alike."""

    def add(self, contribution: Any, times: int) -> None:
        """Add the contribution of as many nodes; subtract it if the number is negative."""

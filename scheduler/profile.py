"""A profile: the plugins that decide on the pods that name it, with their arguments and weights."""

from collections.abc import Callable

from msgspec import Struct

from .cluster import ClusterSnapshot
from .config.args import DefaultPreemptionArgs
from .filters.filter import Filter, GroupFilter
from .node_traits import NodeTraits
from .podinfo import PodInfo
from .scores.score import GroupScore, Score

GroupFilterOf = Callable[[PodInfo, ClusterSnapshot], GroupFilter | None]
"""Returns the form of a filter for groups of nodes, or None if it rejects none."""
GroupScoreOf = Callable[[PodInfo, ClusterSnapshot], GroupScore | None]
"""Returns the form of a score for groups of nodes, or None if it scores all alike."""


TraitsOf = Callable[[PodInfo, ClusterSnapshot], NodeTraits]
"""Returns what tells nodes apart for a pod that the plugin does not leave alone. Raises NeedsReference."""


class FilterPlugin(Struct, frozen=True, eq=False):
    """A filter, under the name of its plugin."""

    name: str
    filter: Filter
    is_node_local: bool = False
    """Whether it checks a node by its own state alone, as `NodeInfo.state` has it."""
    group_form: GroupFilterOf | None = None
    """None if it has no form for groups of nodes."""
    traits: TraitsOf | None = None
    """What tells nodes of a group apart for a single pod; None if only the reference knows."""

    @property
    def is_for_single_pods(self) -> bool:
        """Whether it reads more of a pod or of nodes than classes and groups have."""
        return not self.is_node_local and self.group_form is None


class ScorePlugin(Struct, frozen=True, eq=False):
    """A score, under the name of its plugin."""

    name: str
    score: Score
    weight: int
    is_node_local: bool = False
    """Whether the score of a node depends on its own state alone, and not on the scores of other nodes."""
    group_form: GroupScoreOf | None = None
    """None if it has no form for groups of nodes."""
    traits: TraitsOf | None = None
    """As that of a filter."""

    @property
    def is_for_single_pods(self) -> bool:
        """Whether it reads more of a pod or of nodes than classes and groups have."""
        return not self.is_node_local and self.group_form is None


class Profile(Struct, frozen=True, kw_only=True, eq=False):
    """How the pods of one `schedulerName` are scheduled."""

    name: str
    filters: tuple[FilterPlugin, ...]
    """In the order in which they check a node: the first that rejects it provides the reasons."""
    scores: tuple[ScorePlugin, ...]
    percentage_of_nodes_to_score: int | None = None
    """The share of nodes after which the search for feasible ones ends; 0 chooses one by the number of nodes, None is no limit."""
    preemption: DefaultPreemptionArgs | None
    """None if no pods are preempted."""
    limits_candidates: bool = False
    """Whether the search for candidates of a preemption ends as its arguments say."""
    binds_volumes: bool = True
    bind_timeout: float = 600.0
    """The seconds that the binding of volumes may take."""
    allocates_devices: bool = True
    without_hints: frozenset[str] = frozenset()
    """The plugins whose arguments their hints do not know: any event of theirs may help a pod."""
    names_nodes: bool = False
    """Whether plugins judge nodes by their name or hostname, which groups of nodes do not have."""
